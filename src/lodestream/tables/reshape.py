"""Give a table the columns that its new definition has."""

from __future__ import annotations

from pyspark.sql.types import StructType

from lodestream.tables.jvm import catalog_errors
from lodestream.tables.lake import Lake


def reshape(lake: Lake, name: str, wanted: StructType) -> None:
    """One metadata change, before the rows that need it: columns come, go, or change their type.

    A changed type is a new column of the same name, empty until the rebuilt rows are published.
    """
    held = {field.name: field.dataType for field in lake.whole(name).schema}
    asked = {field.name: field.dataType for field in wanted}
    if held == asked:
        return
    store = lake.store(name)
    jvm = lake.spark._jvm
    if jvm is None:
        raise RuntimeError("a table changes its columns through the JVM")
    java = jvm.org.apache.spark.sql.types.DataType.fromJson(wanted.json())
    types = jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(java)
    stale = [column for column, kind in held.items() if asked.get(column) != kind]
    with catalog_errors(f"reshaping {name}"):
        update = store.table.updateSchema().allowIncompatibleChanges()
        for column in stale:
            update = update.deleteColumn(column)
        for column, kind in asked.items():
            if held.get(column) != kind:
                update = update.addColumn(column, types.findType(column))
        update.commit()
