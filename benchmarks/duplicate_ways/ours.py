"""Our way: a Silver table with a key, which keeps the first row of each."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from duplicate_ways.events import AGAIN, Events
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from upsert_ways.changes import stored

from lodestream import Json, Kafka, Pipeline
from lodestream.config import load_config
from lodestream.engine.build import Builder
from lodestream.flows.assemblies.bronze import bronze_flow
from lodestream.planning.project import Project
from lodestream.runtime.session import start_session
from lodestream.sources.kafka import BRONZE_DDL
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Stamp

EVENT = "id string, day string, zone int, amount decimal(10,2), status string, note string, at bigint"


def pipeline(partition_by: str) -> Pipeline:
    declared = Pipeline("duplicates")
    declared.bronze("orders_raw", Kafka("orders"))
    options = {"partition_by": partition_by} if partition_by else {}

    @declared.silver(decode=Json(EVENT), keys="id", **options)
    def orders(orders_raw: DataFrame) -> DataFrame:
        return orders_raw.withColumn("day", f.col("day").cast("date"))

    return declared


class Ours:
    """A table of so many rows, and the flow that keeps it."""

    def __init__(self, root: Path, rows: int, size: int, partition_by: str) -> None:
        config = load_config(root)
        self.spark = start_session(config, app_name="duplicates")
        lake = Lake(self.spark.newSession(), config.catalog.name)
        self._end, self._size = 0, size
        declared = pipeline(partition_by)
        graph = declared.graph()
        builder = Builder(Project(config, declared, graph), self.spark, "bench", "nowhere:1")
        self._events = Events(lake.spark, rows, size, lambda: self._end)
        self._bronze = bronze_flow(lake, graph["bronze.orders_raw"], "bench", self._events, BRONZE_DDL)
        silver = builder.silver(graph["silver.orders"])
        self._silver, self._source = silver.flow, silver.visited.inputs.sources[0]
        self._bronze.prepare()
        self._fill(rows)

    def look_back(self, reach: int) -> None:
        self._events.look_back(reach)

    def batch(self) -> dict[str, float]:
        """One batch from Bronze to Silver; seconds by step."""
        self._end += self._size
        self._bronze.step(self._size)
        before = self._cpu()
        published = self._silver.step(self._size)
        assert published is not None
        again = published.rows["duplicates"]
        if again != self._size * AGAIN // 1000:
            raise SystemExit(f"{again} duplicates were found in a batch: {dict(published.rows)}")
        return {**published.seconds, "cpu": self._cpu() - before}

    def check(self) -> None:
        """No key is there twice."""
        rows = self._silver.lake.whole(self._silver.name)
        if rows.count() != rows.select("id").distinct().count():
            raise SystemExit("silver.orders holds a key twice")

    def _cpu(self) -> float:
        """Seconds of processor time, of Spark's process and of ours: other work on the machine does not count."""
        jvm: Any = self.spark._jvm
        taken = jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get().toMillis()
        return float(taken) / 1000 + time.process_time()

    def _fill(self, rows: int) -> None:
        """One large batch, as a first load writes it."""
        flow = self._silver
        flow.prepare()
        load = stored(flow.lake.spark, rows)
        latest = self._source.latest()
        assert latest is not None
        stamp = Stamp(flow.name, flow.run, 1, {self._source.name: latest}, None)
        staged = flow.writer.stage(
            flow.writer.begin(),
            stamp,
            # Orders come day by day: one open file at a time is enough, however far the table goes back.
            lambda branch, facts: flow.lake.append(flow.name, load, branch, facts, clustered=True),
        )
        flow.writer.publish(staged)
