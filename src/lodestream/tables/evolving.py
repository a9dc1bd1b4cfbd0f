"""Change a table's columns in place: one commit for all steps, so that a crash leaves either form whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from lodestream.contracts import quoting
from lodestream.contracts.evolution import Step
from lodestream.tables.hidden import hidden_fields, keep_hidden, make_current, show_hidden, whole_columns
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.jvm import catalog_errors
from lodestream.tables.lake import Lake


def columns_of(schema: StructType) -> tuple[str, list[str]]:
    """A schema as `evolve` reads it: every name quoted; and the columns that may not be null."""
    return spelt(schema), [field.name for field in schema if not field.nullable]


def apply_steps(spark: SparkSession, store: IcebergStore, steps: Sequence[Step]) -> None:
    """Raises `CatalogUnavailable` when another run changed the table meanwhile: work the steps out again."""
    with catalog_errors(f"changing the columns of {store.name}"):
        update = store.table.updateSchema()
        for step in steps:
            update = _applied(spark, update, step)
        update.commit()
    store.refresh()


def hidden_columns(lake: Lake, store: IcebergStore) -> StructType:
    """The columns that lie in the table's files only."""
    return StructType([field for field in whole_columns(lake.spark, store.table) if field.name in store.hidden])


def change_hidden(spark: SparkSession, store: IcebergStore, steps: Sequence[Step]) -> None:
    """As `apply_steps`, of hidden columns: what readers see stays as it is."""
    with catalog_errors(f"changing hidden columns of {store.name}"):
        jvm, transaction = spark._jvm, store.table.newTransaction()
        operations = transaction.table().operations()
        shown = operations.current().currentSchemaId()
        show_hidden(jvm, operations, hidden_fields(store.table))
        update = transaction.updateSchema()
        for step in steps:
            update = _applied(spark, update, step)
        update.commit()
        keep_hidden(jvm, operations)
        make_current(jvm, operations, shown)
        transaction.commitTransaction()
    store.refresh()


def _applied(spark: SparkSession, update: Any, step: Step) -> Any:
    place = ".".join(step.path)
    match step.action:
        case "add":
            parent = ".".join(step.path[:-1]) or None
            kind = _iceberg_type(spark, step.type or "")
            return update.addColumn(parent, step.path[-1], kind, step.comment)
        case "widen":
            return update.updateColumn(place, _iceberg_type(spark, step.type or ""))
        case "rename":
            return update.renameColumn(place, step.name)
    return update.makeColumnOptional(place)


def _iceberg_type(spark: SparkSession, ddl: str) -> Any:
    jvm: Any = spark._jvm
    struct = jvm.org.apache.spark.sql.types.StructType.fromDDL(f"c {ddl}")
    return jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(struct).findField("c").type()


def spelt(kind: DataType) -> str:
    """A type as contracts spell it: Spark's own text leaves names unquoted."""
    if isinstance(kind, StructType):
        return f"struct<{','.join(f'{quoting.name(field.name)}:{spelt(field.dataType)}' for field in kind)}>"
    if isinstance(kind, ArrayType):
        return f"array<{spelt(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<{spelt(kind.keyType)},{spelt(kind.valueType)}>"
    return kind.simpleString()
