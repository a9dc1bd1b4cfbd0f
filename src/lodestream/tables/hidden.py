"""Columns that lie in a table's files and that its readers do not see.

Gold keeps beside each row what its aggregates are computed from, a keyed table the order key of the row's last change.
Both must become visible with the row, in one step, so they lie in the same files. An Iceberg table has many schemas,
and the current one has the declared columns alone. Our own snapshots are written with another one, which has the hidden
columns too: who reads such a snapshot by its id finds them.

A tool that rewrites files with the current schema leaves the hidden columns out; its snapshot tells (`holds_hidden`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import coalesce, col, lit, struct
from pyspark.sql.types import StructField, StructType

from lodestream.contracts.quoting import name as quoted
from lodestream.names import ORDER, in_files_only

# A property of the table: its hidden columns with their numbers, as Iceberg writes the fields of a schema.
HIDDEN = "lode.hidden"
# The last part of an order key: whether the change deletes. A row that is there was not deleted, so it is not stored.
GONE = "gone"
# A plain column for each part of an order key: Iceberg reads plain columns in batches, and a table with a struct row by
# row, ten times slower. The old rows of a batch are few, but a whole row group is read for each of them.
_PREFIX = f"{ORDER}_"
Field = dict[str, Any]


class Changing(NamedTuple):
    """What a commit is begun with (`newFastAppend`, `newRowDelta`, ...), and the table that files are written for."""

    begin: Any
    table: Any


def hidden_fields(table: Any) -> list[Field]:
    said = table.properties().get(HIDDEN)
    return json.loads(said) if said else []


def hide(jvm: Any, table: Any) -> bool:
    """Take our columns out of the current schema, in one commit; False when there are none."""
    operations = table.operations()
    base = operations.current()
    schema = _read(jvm, base.schema())
    if not any(in_files_only(one["name"]) for one in schema["fields"]):
        return False
    shown = _built(jvm, _declared(schema))
    hidden = _property(schema)
    builder = _builder(jvm, base).setCurrentSchema(shown, base.lastColumnId()).setProperties(hidden)
    operations.commit(base, builder.build())
    return True


def _property(schema: Field) -> dict[str, str]:
    """The property that says which columns of a schema are hidden."""
    return {HIDDEN: json.dumps([one for one in schema["fields"] if in_files_only(one["name"])])}


@contextmanager
def with_hidden(jvm: Any, table: Any) -> Iterator[Changing]:
    """One commit in which the table has its hidden columns too; readers see the declared ones before and after."""
    fields = hidden_fields(table)
    if not fields:
        yield Changing(table, table)
        return
    transaction = table.newTransaction()
    operations = transaction.table().operations()
    shown = operations.current().currentSchemaId()
    show_hidden(jvm, operations, fields)
    yield Changing(transaction, transaction.table())
    make_current(jvm, operations, shown)
    transaction.commitTransaction()


def show_hidden(jvm: Any, operations: Any, fields: Sequence[Field]) -> None:
    base = operations.current()
    schema = _read(jvm, base.schema())
    whole = _built(jvm, {**schema, "fields": [*schema["fields"], *fields]})
    operations.commit(base, _builder(jvm, base).setCurrentSchema(whole, base.lastColumnId()).build())


def declare_shown(jvm: Any, operations: Any) -> int:
    """The number of the current schema without its hidden columns, which is added; what is current stays."""
    base = operations.current()
    current, schema = base.currentSchemaId(), _read(jvm, base.schema())
    if _declared(schema)["fields"] == schema["fields"]:
        return int(current)
    shown = _built(jvm, _declared(schema))
    operations.commit(base, _builder(jvm, base).setCurrentSchema(shown, base.lastColumnId()).build())
    number = int(operations.current().currentSchemaId())
    make_current(jvm, operations, current)
    return number


def make_current(jvm: Any, operations: Any, schema: int) -> None:
    base = operations.current()
    operations.commit(base, _builder(jvm, base).setCurrentSchema(schema).build())


def keep_hidden(jvm: Any, operations: Any) -> None:
    """Note the hidden columns of the current schema as those of the table."""
    base = operations.current()
    operations.commit(base, _builder(jvm, base).setProperties(hidden_of(jvm, base.schema())).build())


def hidden_of(jvm: Any, schema: Any) -> dict[str, str]:
    """The property that belongs to a schema with hidden columns."""
    return _property(_read(jvm, schema))


def whole_columns(spark: SparkSession, table: Any) -> StructType:
    """The declared and the hidden columns, as Spark has them."""
    jvm: Any = spark._jvm
    schema = _read(jvm, table.schema())
    whole = _built(jvm, {**schema, "fields": [*schema["fields"], *hidden_fields(table)]})
    return StructType.fromJson(json.loads(jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(whole).json()))


def holds_hidden(table: Any, schema_id: int | None) -> bool:
    """Whether a snapshot of this schema was written with the hidden columns that the table has now."""
    wanted = {one["id"] for one in hidden_fields(table)}
    schema = None if schema_id is None else table.schemas().get(schema_id)
    return not wanted or (schema is not None and wanted <= {one.fieldId() for one in schema.columns().toArray()})


def shown(rows: DataFrame) -> DataFrame:
    """Stored rows as the readers of their table see them."""
    hidden = [one for one in rows.columns if in_files_only(one)]
    return rows.drop(*hidden) if hidden else rows


def unfiltered(name: str) -> Column:
    """A hidden column, in a form that Spark hands to no scan as a filter.

    Iceberg holds the filters of a scan against the partitions too, and knows only the declared columns there.
    """
    return coalesce(col(quoted(name)), col(quoted(name)))


def _declared(schema: Field) -> Field:
    return {**schema, "fields": [one for one in schema["fields"] if not in_files_only(one["name"])]}


def _read(jvm: Any, schema: Any) -> Field:
    read: Field = json.loads(jvm.org.apache.iceberg.SchemaParser.toJson(schema))
    read.pop("schema-id", None)
    return read


def _built(jvm: Any, schema: Field) -> Any:
    return jvm.org.apache.iceberg.SchemaParser.fromJson(json.dumps(schema))


def _builder(jvm: Any, base: Any) -> Any:
    return jvm.org.apache.iceberg.TableMetadata.buildFrom(base)


def is_part(column: str) -> bool:
    return column.startswith(_PREFIX)


def parts(order_key: StructType) -> list[StructField]:
    """The columns that an order key is stored in."""
    return [StructField(_PREFIX + field.name, field.dataType) for field in order_key if field.name != GONE]


def spread(rows: DataFrame) -> DataFrame:
    """Rows with their order key in one struct, as the table stores them."""
    order_key = rows.schema[ORDER].dataType
    named = (
        [field.name.removeprefix(_PREFIX) for field in parts(order_key)] if isinstance(order_key, StructType) else []
    )
    kept = [quoted(one) for one in rows.columns if one != ORDER]
    return rows.select(*kept, *[col(f"{ORDER}.{quoted(one)}").alias(_PREFIX + one) for one in named])


def gathered(rows: DataFrame) -> DataFrame:
    """Stored rows with their order key in one struct."""
    stored = [unfiltered(one).alias(one.removeprefix(_PREFIX)) for one in rows.columns if is_part(one)]
    kept = [quoted(one) for one in rows.columns if not is_part(one)]
    return rows.select(*kept, struct(*stored, lit(False).alias(GONE)).alias(ORDER))
