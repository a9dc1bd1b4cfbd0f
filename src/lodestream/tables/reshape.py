"""Give a table the columns that its new definition has, in the same step as the rows that need them.

A table has one current schema for all its branches, and a snapshot is read with the schema it was written with. So the
new shape comes into the metadata beside the old one: one commit adds the schema and the staged rows, and leaves `main`
with the columns it had. `IcebergStore.fast_forward` then shows both at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lodestream.tables.iceberg import SCHEMA
from lodestream.tables.jvm import catalog_errors, members, static
from lodestream.tables.lake import Lake


def overwrite_reshaped(lake: Lake, name: str, rows: DataFrame, branch: str, properties: Mapping[str, str]) -> None:
    """Replace every row on the branch by rows of another shape; what `main` shows stays as it is."""
    held = lake.whole(name).schema
    if _shape(held) == _shape(rows.schema):
        lake.overwrite(name, rows, branch, properties)
        return
    with catalog_errors(f"reshaping {name}"):
        table = lake.store(name).table
        shown = table.schema().schemaId()
        # A schema update is never tried again on changed metadata, so the transaction fails when anything else moves.
        transaction = table.newTransaction()
        _update(lake, transaction.updateSchema(), held, rows.schema)
        reshaped = transaction.table()
        replaced = transaction.newOverwrite().overwriteByRowFilter(_everything(lake)).toBranch(branch)
        for file in written_files(lake, reshaped, rows):
            replaced.addFile(file)
        for key, value in {**properties, SCHEMA: str(reshaped.schema().schemaId())}.items():
            replaced.set(key, value)
        replaced.commit()
        operations = reshaped.operations()
        metadata = operations.current()
        operations.commit(metadata, _jvm(lake).TableMetadata.buildFrom(metadata).setCurrentSchema(shown).build())
        transaction.commitTransaction()


def written_files(lake: Lake, table: Any, rows: DataFrame) -> list[Any]:
    """Data files that no snapshot has yet: as compaction does it, Spark writes and leaves the commit to us."""
    cache = static(lake.spark, _jvm(lake).spark.SparkTableCache, "get")
    coordinator = static(lake.spark, _jvm(lake).spark.FileRewriteCoordinator, "get")
    group = str(uuid.uuid4())
    cache.add(group, table)
    try:
        rows.write.format("iceberg").mode("append").save(group)
        return members(coordinator.fetchNewFiles(table, group))
    finally:
        cache.remove(group)
        coordinator.clearRewrite(table, group)


def _update(lake: Lake, update: Any, held: StructType, wanted: StructType) -> None:
    """Columns come, go, or change their type, and stand in the order of the query.

    A changed type is a new column of the same name: the stored values of the old one are of no use to it.
    """
    spark: Any = lake.spark._jvm
    java = spark.org.apache.spark.sql.types.DataType.fromJson(wanted.json())
    types = spark.org.apache.iceberg.spark.SparkSchemaUtil.convert(java)
    before, after = dict(_shape(held)), dict(_shape(wanted))
    update = update.allowIncompatibleChanges()
    for column, kind in before.items():
        if after.get(column) != kind:
            update = update.deleteColumn(column)
    for column, kind in after.items():
        if before.get(column) != kind:
            update = update.addColumn(column, types.findType(column))
    names = list(after)
    update = update.moveFirst(names[0])
    for earlier, column in pairwise(names):
        update = update.moveAfter(column, earlier)
    update.commit()


def _shape(schema: StructType) -> list[tuple[str, Any]]:
    return [(field.name, field.dataType) for field in schema]


def _everything(lake: Lake) -> Any:
    return _jvm(lake).expressions.Expressions.alwaysTrue()


def _jvm(lake: Lake) -> Any:
    jvm: Any = lake.spark._jvm
    return jvm.org.apache.iceberg
