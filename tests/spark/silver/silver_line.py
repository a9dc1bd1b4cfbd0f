"""A declared pipeline on real Iceberg, fed with the bytes that a test sends instead of Kafka."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from counted import Counted
from pyspark.sql import DataFrame, SparkSession

from lodestream import Pipeline
from lodestream.config import Config
from lodestream.engine.build import Builder
from lodestream.flows.assemblies.bronze import bronze_flow
from lodestream.flows.assemblies.silver_table import SilverTable
from lodestream.flows.flow import Flow, Published
from lodestream.planning.project import Project
from lodestream.sources.kafka import BRONZE_DDL
from lodestream.sources.source import Position
from lodestream.tables.lake import Lake

EVENTS = "bronze.events"
ARRIVED = datetime(2024, 1, 1, tzinfo=UTC)
_runs = itertools.count(1)
_SCHEMA = pa.schema([("value", pa.binary()), ("offset", pa.int64()), ("timestamp", pa.timestamp("us", "UTC"))])


@dataclass(frozen=True)
class Sent:
    value: bytes | None
    at: datetime


class SentEvents(Counted):
    def __init__(self, spark: SparkSession, sent: list[Sent]) -> None:
        self._spark = spark
        self._sent = sent

    @property
    def end(self) -> int:
        return len(self._sent)

    def read(self, since: Position, to: Position) -> DataFrame:
        sent = self._sent[since["next"] : to["next"]]
        rows = [
            {"value": one.value, "offset": offset, "timestamp": one.at}
            for offset, one in enumerate(sent, since["next"])
        ]
        frame = self._spark.createDataFrame(pa.Table.from_pylist(rows, _SCHEMA))
        headers = "array(named_struct('key', 'trace', 'value', X'00FF')) AS headers"
        raw = ("cast(concat('key ', offset) AS binary) AS key", "value", headers, "'events' AS topic", "0 AS partition")
        return frame.selectExpr(*raw, "offset", "timestamp")


class SilverLine:
    def __init__(self, config: Config, spark: SparkSession, pipeline: Pipeline) -> None:
        self.config = config
        self.spark = spark
        self.lake = Lake(spark, config.catalog.name)
        self.sent: list[Sent] = []
        self.declare(pipeline)

    def declare(self, pipeline: Pipeline) -> None:
        """The project as it is after its files were edited."""
        self.project = Project(self.config, pipeline, pipeline.graph())

    def send(self, *events: object, at: datetime = ARRIVED) -> None:
        for event in events:
            raw = event if isinstance(event, bytes) or event is None else json.dumps(event).encode()
            self.sent.append(Sent(raw, at))

    def flows(self) -> dict[str, Flow]:
        """As a fresh process would make them."""
        run = f"run{next(_runs)}"
        builder = Builder(self.project, self.spark, run, "nowhere:1")
        made = {table.name: builder.flow(table) for table in self.project.graph if table.name != EVENTS}
        if EVENTS not in self.project.graph:
            return made
        lake = Lake(self.spark.newSession(), self.lake.catalog)
        bronze = bronze_flow(lake, self.project.graph[EVENTS], run, SentEvents(lake.spark, self.sent), BRONZE_DDL)
        return {EVENTS: bronze, **made}

    def silver(self, name: str) -> SilverTable:
        """A table as a guest of a fresh process finds it."""
        builder = Builder(self.project, self.spark, f"run{next(_runs)}", "nowhere:1")
        return builder.silver(self.project.graph[name])

    def run(self, flows: dict[str, Flow] | None = None) -> dict[str, list[Published]]:
        """Bring every table up to date; the batches that were published, by table."""
        done: dict[str, list[Published]] = {}
        for name, flow in (flows or self.flows()).items():
            batches = done.setdefault(name, [])
            while (published := flow.step(1000)) is not None:
                batches.append(published)
        return done

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """The chosen columns of every row, sorted."""
        found = self.spark.table(f"lode.{table}").selectExpr(*columns).collect()
        return sorted((tuple(row) for row in found), key=repr)

    def column(self, table: str, column: str) -> list[Any]:
        return sorted(row[0] for row in self.rows(table, column))


def balanced(batches: Iterable[Published]) -> bool:
    """in = out + dead + filtered + duplicates, in every batch."""
    rows = [batch.rows for batch in batches]
    return all(
        one["in"] == one["out"] + one.get("dead", 0) + one.get("filtered", 0) + one.get("duplicates", 0) for one in rows
    )
