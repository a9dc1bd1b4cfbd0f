"""Our way: a keyed Silver table with its feed, and a Gold table that folds the feed in."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from upsert_ways.changes import Changes, stored

from lodestream import Json, Kafka, Pipeline
from lodestream.config import load_config
from lodestream.engine.build import Builder
from lodestream.flows.assemblies.bronze import bronze_flow
from lodestream.flows.flow import Flow
from lodestream.names import BATCH, ORDER, WEIGHT, feed_of
from lodestream.planning.project import Project
from lodestream.runtime.session import start_session
from lodestream.sources.kafka import BRONZE_DDL
from lodestream.tables.hidden import shown
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Stamp

GOLD_SQL = "SELECT day, count(*) AS orders, sum(amount) AS revenue FROM silver.orders GROUP BY day"
EVENT = "id string, day string, zone int, amount decimal(10,2), status string, note string, at bigint, op string"


def pipeline(partition_by: str) -> Pipeline:
    declared = Pipeline("upserts")
    declared.bronze("orders_raw", Kafka("orders"))
    options = {"partition_by": partition_by} if partition_by else {}

    @declared.silver(decode=Json(EVENT), keys="id", sequence_by="at", delete_when="op = 'd'", **options)
    def orders(orders_raw: DataFrame) -> DataFrame:
        return orders_raw.withColumn("day", f.col("day").cast("date"))

    declared.gold("by_day", sql=GOLD_SQL)
    return declared


class Ours:
    """A table of so many rows, and the flows that keep it."""

    def __init__(self, root: Path, rows: int, reach: int, size: int, partition_by: str) -> None:
        config = load_config(root)
        self.spark = start_session(config, app_name="upserts")
        self.lake = Lake(self.spark.newSession(), config.catalog.name)
        self._end = 0
        self._size = size
        declared = pipeline(partition_by)
        graph = declared.graph()
        builder = Builder(Project(config, declared, graph), self.spark, "bench", "nowhere:1")
        source = Changes(self.lake.spark, rows, reach, size, lambda: self._end)
        self._bronze = bronze_flow(self.lake, graph["bronze.orders_raw"], "bench", source, BRONZE_DDL)
        silver = builder.silver(graph["silver.orders"])
        self._silver, self._source = silver.flow, silver.visited.inputs.sources[0]
        self._gold = builder.flow(graph["gold.by_day"])
        self._bronze.prepare()
        self._fill(rows)

    def batch(self) -> dict[str, float]:
        """One batch through Silver and Gold; seconds by step."""
        self._end += self._size
        self._bronze.step(self._size)
        before = self._cpu()
        silver, gold = _published(self._silver, self._size), _published(self._gold, self._size)
        return {**{f"silver_{name}": took for name, took in silver.items()}, "gold": gold["total"],
                "total": silver["total"] + gold["total"], "cpu": self._cpu() - before}  # fmt: skip

    def _cpu(self) -> float:
        """Seconds of processor time, of Spark's process and of ours: other work on the machine does not count."""
        jvm: Any = self.spark._jvm
        taken = jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get().toMillis()
        return float(taken) / 1000 + time.process_time()

    def check(self) -> None:
        """Gold is what a recompute over the table gives."""
        spark = self.lake.spark
        kept = spark.table("lode.gold.by_day").select("day", "orders", "revenue")
        fresh = spark.sql(GOLD_SQL.replace("silver.", "lode.silver."))
        if {tuple(row) for row in kept.collect()} != {tuple(row) for row in fresh.collect()}:
            raise SystemExit("gold.by_day is not what its query gives")

    def _fill(self, rows: int) -> None:
        """The feed with one batch that brings every row, as a load would write it; the table applies it."""
        flow = self._silver
        flow.prepare()
        place = self.lake.whole(feed_of(flow.name)).schema[ORDER].dataType.simpleString()
        first = "named_struct('by_0', 0L, 'partition', 0, 'offset', -1L, 'topic', 'orders', 'gone', false)"
        own = shown(self.lake.whole(flow.name)).columns
        beside = (f"cast({first} AS {place}) AS `{ORDER}`", f"1 AS {WEIGHT}", f"1L AS {BATCH}")
        load = stored(flow.lake.spark, rows).selectExpr("*", "'c' AS op").selectExpr(*own, *beside)
        base = flow.writer.begin()
        latest = self._source.latest()
        assert latest is not None
        stamp = Stamp(flow.name, flow.run, 1, {self._source.name: latest}, None)
        flow.writer.publish(
            flow.writer.stage(
                base, stamp, lambda branch, facts: flow.lake.append(feed_of(flow.name), load, branch, facts)
            )
        )
        flow.step(1)  # nothing is new, and the table applies its feed
        while self._gold.step(rows) is not None:
            pass


def _published(flow: Flow, rows: int) -> dict[str, float]:
    published = flow.step(rows)
    assert published is not None
    return dict(published.seconds)
