"""Bronze fed from memory in slices, and the flows of a whole project driven by hand."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pyarrow as pa
from counted import Counted
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit

from lodestream.config import Config
from lodestream.engine.build import Builder
from lodestream.flows.assemblies.bronze import bronze_flow
from lodestream.flows.flow import Flow
from lodestream.flows.gold.table import GoldTable
from lodestream.pipeline import Graph, Pipeline
from lodestream.planning.project import Project
from lodestream.sources.kafka import BRONZE_DDL
from lodestream.sources.source import Position
from lodestream.tables.lake import Lake

_runs = itertools.count(1)


class Wire(Counted):
    """Events as bytes; `end` says how many of them have arrived."""

    def __init__(self, values: Sequence[bytes | None] | pa.Array) -> None:
        self._values = values if isinstance(values, pa.Array) else pa.array(values, pa.binary())
        self.spark: SparkSession | None = None
        self.end = 0

    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        return latest  # the test says what one batch is

    def read(self, since: Position, to: Position) -> DataFrame:
        assert self.spark is not None
        part = self._values[since["next"] : to["next"]].cast(pa.binary())
        offsets = pa.array(range(since["next"], to["next"]), pa.int64())
        rows = self.spark.createDataFrame(pa.table({"value": part, "offset": offsets}))
        return rows.select(
            lit(None).cast("binary").alias("key"),
            "value",
            lit(None).cast("array<struct<key:string,value:binary>>").alias("headers"),
            lit("wire").alias("topic"),
            lit(0).alias("partition"),
            col("offset"),
            expr("timestamp '2024-01-01'").alias("timestamp"),
        )


class Works:
    """All flows of a project in the order of its graph; `settle` brings every table up to date."""

    def __init__(
        self, config: Config, spark: SparkSession, declared: tuple[Pipeline, Graph], wires: Mapping[str, Wire]
    ) -> None:
        self.spark = spark
        run = f"works{next(_runs)}"
        builder = Builder(Project(config, *declared), spark, run, "nowhere:1")
        self.flows: dict[str, Flow] = {}
        self.gold: dict[str, GoldTable] = {}
        for table in declared[1]:
            if table.name in wires:
                lake = Lake(spark.newSession(), config.catalog.name)
                wires[table.name].spark = lake.spark
                self.flows[table.name] = bronze_flow(lake, table, run, wires[table.name], BRONZE_DDL)
            elif table.tier == "gold":
                kept = builder.gold(table)
                self.flows[table.name], self.gold[table.name] = kept.flow, kept.table
            else:
                self.flows[table.name] = builder.flow(table)

    def settle(self) -> None:
        for flow in self.flows.values():
            while flow.step(1_000_000) is not None:
                pass

    def rows(self, table: str) -> DataFrame:
        return self.spark.table(f"lode.{table}")
