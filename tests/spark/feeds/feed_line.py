"""Changes from memory through Bronze into keyed tables on real Iceberg, held against the oracle."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from datetime import date, timedelta
from typing import Annotated, Any

from counted import Counted
from feed_model import Change, upserted, versions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit

from lodestream import Json, Kafka, Pipeline
from lodestream.config import Config
from lodestream.contracts import Key, Record
from lodestream.engine.build import Builder
from lodestream.engine.changes import read_changes
from lodestream.engine.status import read_status
from lodestream.flows.assemblies.bronze import bronze_flow
from lodestream.flows.flow import Flow
from lodestream.planning.project import Project
from lodestream.sources.kafka import BRONZE_DDL
from lodestream.sources.source import Position
from lodestream.sources.table.changes import KeyedChanges
from lodestream.tables.lake import Lake

BRONZE, ITEMS, SMALL, VERSIONS, TOTALS = (
    "bronze.items_raw",
    "silver.items",
    "silver.small_items",
    "silver.item_versions",
    "gold.item_totals",
)
LIMIT = 6  # rows of silver.small_items are lighter
FIRST_DAY = date(2024, 1, 1)
_runs = itertools.count(1)


class Killed(BaseException):
    """The process is gone: nothing of it may run on."""


def killed() -> None:
    raise Killed


class Item(Record):
    """What a change brings; its sequence and its operation are no columns of the table."""

    version = "1.0.0"
    owner = "tests"

    id: Annotated[str, Key()]
    weight: int
    day: date


class Events(Counted):
    """The line's changes in the order of their arrival."""

    def __init__(self, spark: SparkSession, line: FeedLine) -> None:
        self._spark = spark
        self._line = line

    @property
    def end(self) -> int:  # type: ignore[override]
        return len(self._line.changes)

    def read(self, since: Position, to: Position) -> DataFrame:
        chosen = self._line.changes[since["next"] : to["next"]]
        rows = [(_event(one), one.partition, one.offset) for one in chosen]
        literals = ", ".join(f"({json.dumps(value)}, {partition}, {offset}L)" for value, partition, offset in rows)
        frame = self._spark.sql(f"SELECT * FROM VALUES {literals} AS v(value, partition, offset)")
        return frame.select(
            lit(None).cast("binary").alias("key"),
            col("value").cast("binary").alias("value"),
            lit(None).cast("array<struct<key:string,value:binary>>").alias("headers"),
            lit("items").alias("topic"),
            "partition",
            "offset",
            expr("timestamp '2024-01-01'").alias("timestamp"),
        )


class FeedLine:
    """Five tables and, at any time, the flows of one run."""

    def __init__(self, config: Config, spark: SparkSession) -> None:
        self.spark = spark
        self.changes: list[Change] = []
        self.lake = Lake(spark, config.catalog.name)
        self.project = Project(config, *declared())

    def flows(self) -> dict[str, Flow]:
        """As a fresh process would make them."""
        run = f"run{next(_runs)}"
        builder = Builder(self.project, self.spark, run, "nowhere:1")
        graph = self.project.graph
        lake = Lake(self.spark.newSession(), self.lake.catalog)
        flows: dict[str, Flow] = {BRONZE: bronze_flow(lake, graph[BRONZE], run, Events(lake.spark, self), BRONZE_DDL)}
        return flows | {table.name: builder.flow(table) for table in graph if table.tier != "bronze"}

    def drive(self, flows: dict[str, Flow], *, rows: int = 10_000) -> None:
        for flow in flows.values():
            while flow.step(rows) is not None:
                pass

    def batches(self, flows: dict[str, Flow]) -> dict[str, Any]:
        """One batch of every flow; what those of the keyed tables count."""
        published = {name: flow.step(10_000) for name, flow in flows.items()}
        return {name: one.rows for name in (ITEMS, VERSIONS, SMALL) if (one := published[name]) is not None}

    def rows(self, table: str) -> list[Any]:
        return self.spark.table(f"lode.{table}").collect()

    def check(self) -> None:
        """Every table is what the oracle makes of all changes that have arrived."""
        wanted = upserted(self.changes)
        assert _once((row.id, (row.weight, row.day)) for row in self.rows(ITEMS)) == set(wanted.items())
        light = {(key, row) for key, row in wanted.items() if row[0] < LIMIT}
        assert _once((row.id, (row.weight, row.day)) for row in self.rows(SMALL)) == light
        assert {row.twice for row in self.rows(SMALL)} == {2 * row[0] for _, row in light}
        held = _once(
            (row.id, (row.weight, row.day), row.valid_from, row.valid_to, row.is_current) for row in self.rows(VERSIONS)
        )
        assert held == versions(self.changes)
        per_day: dict[date, tuple[int, int]] = {}
        for _, (weight, day) in wanted.items():
            count, total = per_day.get(day, (0, 0))
            per_day[day] = (count + 1, total + weight)
        assert {row.day: (row.n, row.weight) for row in self.rows(TOTALS)} == per_day

    def check_feed(self, table: str) -> None:
        """At every place of the feed: the weights add up to the table as it was there, and each row is there once."""
        source = KeyedChanges(self.lake, table)
        latest = source.latest()
        assert latest is not None
        store = self.lake.store(source.feed)
        places = [one.id for one in store.ancestors(store.head()) if one.stamp is not None]
        assert places[0] == latest["snapshot"]
        for snapshot in places[:: max(1, len(places) // 3)]:
            to = {**latest, "snapshot": snapshot}
            rows = source.changes(source.start(latest), to)
            own = [f"`{one}`" for one in rows.columns if one != "_weight"]
            held = rows.groupBy(*own).agg(expr("sum(_weight)").alias("times")).where("times != 0").collect()
            assert all(row.times == 1 for row in held)
            now = source.now(to).select(*own).collect()
            assert Counter(tuple(row)[:-1] for row in held) == Counter(tuple(row) for row in now)

    def check_readers(self, table: str) -> None:
        """The feed as users read it, from Spark and without a JVM: the weights add up to the table."""
        wanted = Counter((row.id, row.weight, str(row.day)) for row in self.rows(table))
        by_spark = self.project.pipeline.changes(table, self.spark, catalog="lode").collect()
        assert _held((row.id, row.weight, str(row.day), row._weight) for row in by_spark) == wanted
        told = read_changes(self.project, table, limit=0)
        assert not told.more
        assert _held((*map(str, _visible(one.row)), one.weight) for one in told.changes) == _texts(wanted)
        half = told.changes[len(told.changes) // 2]
        later = read_changes(self.project, table, since=str(half.snapshot), limit=0)
        # Where half of all changes came with the last snapshot, nothing is later.
        first = next((number for number, one in enumerate(told.changes) if one.at > half.at), len(told.changes))
        assert later.changes == told.changes[first:]
        assert read_changes(self.project, table, since=half.at.isoformat(), limit=0) == later
        assert read_changes(self.project, table, limit=1).more
        assert self.paged(table, len(told.changes) // 3) == list(told.changes)

    def check_gold_reader(self) -> None:
        """A table that is replaced in place has a feed as well, and pages of it leave nothing out."""
        told = read_changes(self.project, TOTALS, limit=0).changes
        assert {one.weight for one in told} == {1, -1}
        wanted = {(row.day, row.n, row.weight) for row in self.rows(TOTALS)}
        assert set(_held((*_totals(one.row), one.weight) for one in told)) == wanted
        assert self.paged(TOTALS, len(told) // 4) == list(told)
        half = told[len(told) // 2].snapshot
        later = Counter(
            (*_totals(one.row), one.weight)
            for one in read_changes(self.project, TOTALS, since=str(half), limit=0).changes
        )
        by_spark = self.project.pipeline.changes(TOTALS, self.spark, since=half, catalog="lode").collect()
        assert set(by_spark[0].asDict() if by_spark else {}) <= {"day", "n", "weight", "_weight"}
        net = _net((row.day, row.n, row.weight, row._weight) for row in by_spark)
        assert net == _net(later.elements())

    def check_status(self) -> None:
        """The rows that are told are the rows that are found, after updates and deletes too."""
        shown = {one.name: one.rows for one in read_status(self.project).tables}
        names = (ITEMS, SMALL, VERSIONS, TOTALS)
        assert {name: shown[name] for name in names} == {name: len(self.rows(name)) for name in names}

    def paged(self, table: str, limit: int) -> list[Any]:
        found, since = [], None
        while True:
            page = read_changes(self.project, table, since=since, limit=max(1, limit))
            found, since = [*found, *page.changes], page.next
            if not page.more:
                return found


def declared() -> tuple[Any, Any]:
    pipeline = Pipeline("line")
    pipeline.bronze("items_raw", Kafka("items"))
    event = Json("id string, weight bigint, day string, op string, at bigint")

    @pipeline.silver(decode=event, contract=Item, sequence_by="at", delete_when="op = 'd'", partition_by="days(day)")
    def items(items_raw: DataFrame) -> DataFrame:
        return items_raw

    @pipeline.silver(decode=event, contract=Item, sequence_by="at", delete_when="op = 'd'", history=True)
    def item_versions(items_raw: DataFrame) -> DataFrame:
        return items_raw

    @pipeline.silver(filters={"light": f"weight < {LIMIT}"})
    def small_items(items: DataFrame) -> DataFrame:
        return items.select("id", "weight", "day", (col("weight") * 2).alias("twice"))

    pipeline.gold("item_totals", sql="SELECT day, count(*) AS n, sum(weight) AS weight FROM silver.items GROUP BY day")
    return pipeline, pipeline.graph()


def _event(change: Change) -> str:
    weight, day = change.row if change.row else (None, None)
    event = {"id": change.key, "op": "d" if change.gone else "u", "at": change.at}
    if not change.gone:  # a delete often brings its key and nothing else
        event |= {"weight": weight, "day": str(day)}
    return json.dumps(event)


def _once(found: Any) -> set[Any]:
    counted = Counter(found)
    doubled = [one for one, times in counted.items() if times > 1]
    assert not doubled, f"more than once: {doubled[:10]}"
    return set(counted)


def _totals(row: Any) -> tuple[Any, ...]:
    return row["day"], row["n"], row["weight"]


def _net(weighted: Any) -> dict[tuple[Any, ...], int]:
    held: Counter[tuple[Any, ...]] = Counter()
    for *row, weight in weighted:
        held[tuple(row)] += weight
    return {row: times for row, times in held.items() if times}


def _held(weighted: Any) -> Counter[tuple[Any, ...]]:
    held: Counter[tuple[Any, ...]] = Counter()
    for *row, weight in weighted:
        held[tuple(row)] += weight
    return Counter({row: times for row, times in held.items() if times})


def _visible(row: Any) -> tuple[Any, ...]:
    return row["id"], row["weight"], row["day"]


def _texts(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter({tuple(map(str, row)): times for row, times in rows.items()})


def some_day(number: int) -> date:
    return FIRST_DAY + timedelta(days=number)
