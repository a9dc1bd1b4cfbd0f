"""Give a table the columns that its new definition has, in the same step as the rows that need them.

A table has one current schema for all its branches, and a snapshot is read with the schema it was written with. So the
new shape comes into the metadata beside the old one: one commit adds the schema and the staged rows, and leaves `main`
with the columns it had. `IcebergStore.fast_forward` then shows both at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lodestream.errors import DeclarationError
from lodestream.tables.hidden import declare_shown, hidden_fields, show_hidden, whole_columns
from lodestream.tables.jvm import catalog_errors, members
from lodestream.tables.lake import Lake, written_files
from lodestream.tables.notes import SCHEMA, SPEC
from lodestream.tables.stored import as_stored, in_stored_types


def overwrite_reshaped(lake: Lake, name: str, rows: DataFrame, branch: str, properties: Mapping[str, str]) -> None:
    """Replace every row on the branch by rows of another shape; what `main` shows stays as it is."""
    table, jvm = lake.store(name).table, lake.spark._jvm
    held, rows = whole_columns(lake.spark, table), in_stored_types(rows)
    if _shape(held) == _shape(rows.schema):
        lake.overwrite(name, rows, branch, properties)
        return
    with catalog_errors(f"reshaping {name}"):
        shown, spec = table.schema().schemaId(), table.spec().specId()
        # A schema update is never tried again on changed metadata, so the transaction fails when anything else moves.
        transaction = table.newTransaction()
        operations = transaction.table().operations()
        show_hidden(jvm, operations, hidden_fields(table))
        plan = _Change.of(lake, transaction.table(), held, rows.schema)
        parted = [field for field in members(table.spec().fields()) if plan.takes(table, field)]
        _part_by_none(transaction, parted)
        plan.apply(transaction.updateSchema())
        _part_again(lake, name, table, transaction, parted)
        reshaped = transaction.table()
        declared = declare_shown(jvm, operations)
        replaced = transaction.newOverwrite().overwriteByRowFilter(_everything(lake)).toBranch(branch)
        for file in written_files(lake.spark, reshaped, rows):
            replaced.addFile(file)
        own = {SCHEMA: str(declared), SPEC: str(reshaped.spec().specId())}
        for key, value in {**properties, **own}.items():
            replaced.set(key, value)
        replaced.commit()
        metadata = operations.current()
        kept = _jvm(lake).TableMetadata.buildFrom(metadata).setCurrentSchema(shown).setDefaultPartitionSpec(spec)
        operations.commit(metadata, kept.build())
        transaction.commitTransaction()


@dataclass(frozen=True, slots=True)
class _Change:
    """Columns come, go, or change their type, and stand in the order of the query.

    A type that Iceberg can widen is widened. Any other is a new column of the same name: the stored values of the old
    one are of no use to it.
    """

    types: Any
    gone: tuple[str, ...]
    come: tuple[str, ...]
    wider: tuple[str, ...]
    order: tuple[str, ...]

    @classmethod
    def of(cls, lake: Lake, table: Any, held: StructType, wanted: StructType) -> _Change:
        spark: Any = lake.spark._jvm
        java = spark.org.apache.spark.sql.types.DataType.fromJson(wanted.json())
        types = spark.org.apache.iceberg.spark.SparkSchemaUtil.convert(java)
        before, after = dict(_shape(held)), dict(_shape(wanted))
        changed = [column for column, kind in after.items() if before.get(column, kind) != kind]
        schema = table.schema()
        wider = tuple(one for one in changed if _widens(lake, schema.findType(one), types.findType(one)))
        new = {column for column in changed if column not in wider}
        gone = tuple(column for column in before if column not in after or column in new)
        come = tuple(column for column in after if column not in before or column in new)
        return cls(types, gone, come, wider, tuple(after))

    def takes(self, table: Any, field: Any) -> bool:
        """Whether it takes away what a partition field is made of."""
        return str(table.schema().findColumnName(field.sourceId())).partition(".")[0] in self.gone

    def apply(self, update: Any) -> None:
        update = update.allowIncompatibleChanges()
        for column in self.wider:
            update = update.updateColumn(column, self.types.findType(column))
        for column in self.gone:
            update = update.deleteColumn(column)
        for column in self.come:
            # A name with a dot in it is one name: said with its parent, which is none.
            update = update.addColumn(None, column, self.types.findType(column), None)
        update = update.moveFirst(self.order[0])
        for earlier, column in pairwise(self.order):
            update = update.moveAfter(column, earlier)
        update.commit()


def _part_by_none(transaction: Any, fields: Sequence[Any]) -> None:
    """A schema must have the columns that its table is partitioned by, so these fields go first."""
    if fields:
        update = transaction.updateSpec()
        for field in fields:
            update = update.removeField(field.name())
        update.commit()


def _part_again(lake: Lake, name: str, table: Any, transaction: Any, fields: Sequence[Any]) -> None:
    """Partition by the new columns of the same names as by the old ones; a column that is gone parts nothing."""
    schema = transaction.table().schema()
    again = [(field, str(table.schema().findColumnName(field.sourceId()))) for field in fields]
    again = [(field, column) for field, column in again if schema.findType(column) is not None]
    if not again:
        return
    update = transaction.updateSpec()
    for field, column in again:
        if not field.transform().canTransform(schema.findType(column)):
            raise DeclarationError(
                f"{name}: column {column} is now {schema.findType(column)}, which it cannot be partitioned by",
                why=f"the table is partitioned by {field.transform()} of {column}",
                fix=f"convert {column} in the query, or drop the table and declare another partition_by",
            )
        if str(field.transform()) == "identity":
            update = update.addField(column)
        else:
            term = _jvm(lake).expressions.Expressions.transform(column, field.transform())
            update = update.addField(field.name(), term)
    update.commit()


def _widens(lake: Lake, held: Any, wanted: Any) -> bool:
    primitive = held.isPrimitiveType() and wanted.isPrimitiveType()
    return bool(primitive and _jvm(lake).types.TypeUtil.isPromotionAllowed(held, wanted))


def _shape(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, as_stored(field.dataType).simpleString()) for field in schema]


def _everything(lake: Lake) -> Any:
    return _jvm(lake).expressions.Expressions.alwaysTrue()


def _jvm(lake: Lake) -> Any:
    jvm: Any = lake.spark._jvm
    return jvm.org.apache.iceberg
