"""Bronze, Silver with dead letters, Gold: real flows on real Iceberg, fed with numbers instead of Kafka."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

from counted import Counted
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit

from lodestream import Json, Kafka, Pipeline
from lodestream.config import Config
from lodestream.engine.build import Builder
from lodestream.flows.assemblies.bronze import bronze_flow
from lodestream.flows.flow import Flow
from lodestream.planning.project import Project
from lodestream.sources.kafka import BRONZE_DDL
from lodestream.sources.source import Position
from lodestream.tables.lake import Lake

BRONZE, SILVER, DEAD, GOLD = "bronze.numbers_raw", "silver.numbers", "silver.numbers__dead", "gold.totals"
_runs = itertools.count(1)


class Killed(BaseException):
    """The process is gone: nothing of it may run on."""


def killed() -> None:
    raise Killed


class Numbers(Counted):
    """The numbers up to `end`; every seventh one is not JSON."""

    def __init__(self, spark: SparkSession, line: Line) -> None:
        self._spark = spark
        self._line = line

    @property
    def end(self) -> int:
        return self._line.end

    def read(self, since: Position, to: Position) -> DataFrame:
        json = "to_json(named_struct('id', id, 'kind', id % 3, 'cents', id * 5))"
        value = expr(f"CASE WHEN id % 7 = 0 THEN '{{broken' ELSE {json} END").cast("binary")
        return self._spark.range(since["next"], to["next"]).select(
            lit(None).cast("binary").alias("key"),
            value.alias("value"),
            lit(None).cast("array<struct<key:string,value:binary>>").alias("headers"),
            lit("numbers").alias("topic"),
            lit(0).alias("partition"),
            col("id").alias("offset"),
            expr("timestamp '2024-01-01'").alias("timestamp"),
        )


class Line:
    """Three tables and, at any time, the flows of one run."""

    def __init__(self, config: Config, spark: SparkSession) -> None:
        self.spark = spark
        self.end = 0
        self.lake = Lake(spark, config.catalog.name)
        self._project = Project(config, *_declared(config.root))

    def flows(self) -> dict[str, Flow]:
        """As a fresh process would make them."""
        run = f"run{next(_runs)}"
        builder = Builder(self._project, self.spark, run, "nowhere:1")
        graph = self._project.graph
        lake = Lake(self.spark.newSession(), self.lake.catalog)
        bronze = bronze_flow(lake, graph[BRONZE], run, Numbers(lake.spark, self), BRONZE_DDL)
        return {BRONZE: bronze, SILVER: builder.flow(graph[SILVER]), GOLD: builder.flow(graph[GOLD])}

    def drive(self, flows: dict[str, Flow], *, rows: int = 40) -> None:
        for flow in flows.values():
            while flow.step(rows) is not None:
                pass

    def rows(self, table: str) -> list[Any]:
        return self.spark.table(f"lode.{table}").collect()

    def check(self) -> None:
        """Every number exactly once, in Silver or among the dead; Gold equal to a recompute."""
        good = [number for number in range(self.end) if number % 7]
        offsets = self.spark.table(f"lode.{BRONZE}").select("offset").collect()
        assert _once(row.offset for row in offsets) == list(range(self.end))
        assert _once(row.id for row in self.rows(SILVER)) == good
        assert _once(row.offset for row in self.rows(DEAD)) == [n for n in range(self.end) if n % 7 == 0]
        wanted = {kind: ([n for n in good if n % 3 == kind]) for kind in range(3)}
        held = {row.kind: (row.n, row.cents) for row in self.rows(GOLD)}
        assert held == {kind: (len(ns), sum(n * 5 for n in ns)) for kind, ns in wanted.items() if ns}

    def check_chain(self) -> None:
        for table in (BRONZE, SILVER, GOLD):
            store = self.lake.store(table)
            stamps = [one.stamp for one in store.ancestors(store.head()) if one.stamp is not None]
            for after, before in itertools.pairwise(stamps):
                assert after.started_from == before.positions, f"{table} batch {after.batch}"


def _declared(root: Path) -> tuple[Any, Any]:
    pipeline = Pipeline("line")
    pipeline.bronze("numbers_raw", Kafka("numbers"))

    @pipeline.silver(decode=Json("id bigint, kind bigint, cents bigint"))
    def numbers(numbers_raw: DataFrame) -> DataFrame:
        return numbers_raw

    pipeline.gold("totals", sql="SELECT kind, count(*) AS n, sum(cents) AS cents FROM silver.numbers GROUP BY kind")
    return pipeline, pipeline.graph()


def _once(found: Any) -> list[int]:
    counted = Counter(found)
    doubled = [number for number, times in counted.items() if times > 1]
    assert not doubled, f"more than once: {sorted(doubled)[:10]}"
    return sorted(counted)
