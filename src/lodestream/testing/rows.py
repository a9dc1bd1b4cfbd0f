"""Rows that a test puts into a table as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lodestream.config import nearest
from lodestream.engine.build import new_run
from lodestream.errors import ConfigError
from lodestream.pipeline import Table
from lodestream.planning.project import contract_of
from lodestream.tables.lake import Lake
from lodestream.tables.publish import Writer
from lodestream.tables.snapshot import Stamp
from lodestream.testing.encode import as_json


def put_rows(lake: Lake, table: Table, rows: Sequence[Mapping[str, Any]], columns: str | None) -> None:
    """Publish the rows as a batch of the table: added to Silver, in place of what reference data and Gold hold."""
    ddl = columns or _columns(table)
    frame = frame_of(lake.spark, rows, ddl)
    store = lake.open(table.name, ddl, partition_by=table.partition_by)
    writer = Writer(store, new_run(), alone=False)
    head = store.head()
    number = head.stamp.batch + 1 if head and head.stamp else 1
    stamp = Stamp(table.name, "given", number, {"given": number}, None)
    write = lake.append if table.tier == "silver" and not table.is_reference else lake.overwrite
    writer.publish(writer.stage(writer.begin(adopt=True), stamp, partial(write, table.name, frame)))


def frame_of(spark: SparkSession, rows: Sequence[Mapping[str, Any]], ddl: str) -> DataFrame:
    """Python values as the columns of a DDL. By way of JSON: Python's own moments are local time to Spark."""
    names = cast("StructType", StructType.fromDDL(ddl)).names
    for row in rows:
        for name in set(row) - set(names):
            close = nearest(name, names)
            raise ConfigError(
                f"a given row has the column {name!r}, which the table has not",
                why=f"its columns are {', '.join(names)}",
                fix=f"did you mean {close}?" if close else "leave it out",
            )
    given = spark.createDataFrame(pa.table({"row": pa.array([as_json(row) for row in rows], pa.string())}))
    text = ddl.replace("\\", "\\\\").replace("'", "\\'")
    return given.selectExpr(f"from_json(row, '{text}', map('mode', 'FAILFAST')) AS row").select("row.*")


def _columns(table: Table) -> str:
    contract = contract_of(table)
    if contract is not None:
        return contract.ddl()
    if table.source is not None and table.source.schema_text:
        return table.source.schema_text
    raise ConfigError(
        f"the columns of {table.name} are not known",
        why="it has no contract",
        fix=f'say them: given("{table.name}", rows, columns="id int, name string")',
    )
