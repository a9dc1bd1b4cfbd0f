"""A key counts once, in the table or in the declared period: in any zone, and however events are cut into batches."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Hashable
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr, lit
from silver_line import SilverLine, balanced

from lodestream import Json, Kafka, Pipeline
from lodestream.contracts import Record, column
from lodestream.flows.columns.pruning import Pruning
from lodestream.pipeline import parse_partition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("size")
Make = Callable[[Pipeline], SilverLine]
SEED = int(os.environ.get("LODE_CUT_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
# Around the hours that clocks skip and repeat, around midnight of UTC and of New York, and long before and after.
MOMENTS = [
    datetime.fromisoformat(day) + timedelta(minutes=minutes)
    for day in ("2024-03-10", "2024-11-03", "2024-11-04", "2024-12-31", "1969-12-31", "1700-02-28", "2150-01-01")
    for minutes in (0, 30, 90, 150, 290, 299, 300, 390, 1439)
]
EVENT = Json("id bigint, at timestamp_ntz, seen timestamp, place string, note bigint")


class Order(Record):
    """What the project of `lode init` asks of an order."""

    version = "1.0.0"
    owner = "tests"

    order_id: str = column(key=True)
    ordered_at: datetime = column("timestamp_ntz")


def test_a_primary_key_that_comes_again_is_a_duplicate_at_any_hour_of_any_day(line: Make, zone: str) -> None:
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(decode=Json(), contract=Order, partition_by="days(ordered_at)")
    def orders(events: DataFrame) -> DataFrame:
        return events

    shop = line(pipeline)
    flows, found = shop.flows(), []
    for moment in ("2024-01-31T10:00:00", "2024-01-31T12:00:00", "2024-02-01T10:00:00", "2024-01-31T10:00:00"):
        shop.send(
            {"order_id": "o-90", "ordered_at": moment}, {"order_id": moment + str(len(found)), "ordered_at": moment}
        )
        found += shop.run(flows)["silver.orders"]
    assert [one.rows["duplicates"] for one in found] == [0, 1, 1, 1]
    kept = shop.rows("silver.orders", "cast(ordered_at AS string)", "order_id")
    assert [at for at, order in kept if order == "o-90"] == ["2024-01-31 10:00:00"]


BOUNDS: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], Hashable]]] = {
    "whole": ({"partition_by": "days(at)"}, lambda one: None),
    "daily": (
        {"partition_by": "days(at)", "dedupe_within": "days(at)"},
        lambda one: one["at"] and one["at"].date(),
    ),
    "hourly": (
        {"partition_by": ["place", "months(seen)"], "dedupe_within": ["place", "hours(seen)"]},
        lambda one: (one["place"], one["seen"].replace(minute=0)),
    ),
}


def test_any_way_to_cut_the_events_gives_the_same_rows(
    line: Make, summer_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sys.stdout.write(f"seed {SEED}: LODE_CUT_SEED={SEED} repeats it\n")
    chance = random.Random(SEED)
    if chance.random() < 0.5:
        with_directories(monkeypatch)
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))
    for name, (options, _) in BOUNDS.items():
        pipeline.silver(name, decode=EVENT, keys="id", **options)(kept_as_it_is)
    shop, sent = line(pipeline), some_events(chance, 120)
    flows, batches, start = shop.flows(), {name: [] for name in BOUNDS}, 0
    while start < len(sent):
        size = chance.choice([1, 25, 60])
        shop.send(*map(spelt, sent[start : start + size]))
        start += size
        if chance.random() < 0.2:
            flows = shop.flows()  # a fresh process knows nothing but what the tables hold
        for name, found in shop.run(flows).items():
            batches.get(name.removeprefix("silver."), []).extend(found)
    for name, (_, period) in BOUNDS.items():
        first = {(one["id"], period(one)): one["note"] for one in reversed(sent)}
        assert shop.column(f"silver.{name}", "note") == sorted(first.values()), name
        assert balanced(batches[name])


@pytest.mark.parametrize("session_zone", ["America/New_York", "Asia/Kathmandu"])
def test_periods_are_those_of_iceberg_and_a_filter_by_them_finds_every_row(lake: Any, session_zone: str) -> None:
    spark: SparkSession = lake.spark.newSession()
    spark.conf.set("spark.sql.session.timeZone", session_zone)
    moments = ", ".join(f"timestamp_ntz'{one}'" for one in MOMENTS)
    rows = spark.sql(f"SELECT explode(array({moments}, NULL)) AS wall").selectExpr(
        "wall", "cast(concat(cast(wall AS string), 'Z') AS timestamp) AS instant", "cast(wall AS date) AS day"
    )
    since = {"years": 1970, "months": 1970 * 12, "days": 0, "hours": 0}
    columns = ("wall", "instant", "day")
    texts = [f"{unit}({one})" for unit in since for one in columns if (unit, one) != ("hours", "day")]
    fields = [*map(parse_partition, texts), *map(parse_partition, columns)]
    prunings = {f"period {field}": Pruning.over([field], rows.schema) for field in fields}
    periods = {name: found.periods()[0].cast("string") for name, found in prunings.items()}
    rows = rows.select("*", *[period.alias(name) for name, period in periods.items()]).localCheckpoint()

    numbers = []
    for field in fields[: len(texts)]:
        theirs = f"lode.system.{field.transform}({field.column})"
        theirs = f"unix_date({theirs})" if field.transform == "days" else theirs
        numbers.append(expr(f"count_if(NOT `period {field}` <=> cast({theirs} + {since[field.transform]} AS string))"))
    assert set(rows.agg(*numbers).collect()[0]) == {0}

    wanted, left = {}, []
    for number, some in enumerate(("true", "wall IS NULL", "month(wall) = 11", "wall < '1970-01-01'")):
        told = rows.where(some).agg(*[one for found in prunings.values() for one in found.touched()]).collect()[0]
        chosen = rows.where(some).drop(*columns).collect()
        for name, found in prunings.items():
            wanted[number, name] = {row[name] for row in chosen}
            left.append(found.only(rows, told).select(lit(number), lit(name), f"`{name}`"))
    held: dict[tuple[int, str], set[Any]] = {one: set() for one in wanted}
    for number, name, period in reduce(DataFrame.unionAll, left).distinct().collect():
        held[number, name].add(period)
    assert held == wanted, "all partitions that the rows lie in, and no other"


def test_a_keyed_table_whose_partition_is_in_its_key_finds_its_old_rows(line: Make, zone: str) -> None:
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))
    options = {"keys": ["id", "at"], "sequence_by": "note", "partition_by": "days(at)"}
    pipeline.silver("orders", decode=EVENT, **options)(kept_as_it_is)
    shop = line(pipeline)
    flows = shop.flows()
    for note in (1, 3, 2):
        shop.send(*({"id": 1, "at": one.isoformat(), "note": note} for one in MOMENTS))
        shop.run(flows)
    assert shop.rows("silver.orders", "count(*)", "count(DISTINCT at)", "min(note)") == [
        (len(MOMENTS), len(MOMENTS), 3)
    ]


def some_events(chance: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": chance.randrange(12),
            "at": chance.choice([*MOMENTS, None]),
            "seen": chance.choice(MOMENTS).replace(tzinfo=UTC),
            "place": chance.choice(["a", "$b'", None]),
            "note": note,
        }
        for note in range(count)
    ]


def spelt(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in event.items()}


def kept_as_it_is(events: DataFrame) -> DataFrame:
    return events


def with_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first batch on, as large tables have them."""
    from test_accounting import at_once

    from lodestream.flows.directory import directory

    monkeypatch.setattr(directory, "CALM", 1)
    monkeypatch.setattr(directory, "beside", at_once)


def test_keys_that_are_no_text_are_found_again(line: Make) -> None:
    """Python shows their bytes as replacement marks: a filter made of what it shows would find none of them."""
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))
    raw = ("cast(value AS string) AS word", "cast(value AS string) AS place", "offset", "_lode")

    @pipeline.silver(keys=["word", "place"])
    def firsts(events: DataFrame) -> DataFrame:
        return events.selectExpr(*raw)

    @pipeline.silver(keys=["word", "place"], sequence_by="offset")
    def lasts(events: DataFrame) -> DataFrame:
        return events.selectExpr(*raw)

    shop, rounds = line(pipeline), 3
    flows = shop.flows()
    for number in range(rounds):
        shop.send(b"\xff", b"\xfe", b"\xed\xa0\x80", "\ufffd".encode(), str(number).encode())
        done = shop.run(flows)
        assert balanced(done["silver.firsts"])
    words = ["30", "31", "32", "EDA080", "EFBFBD", "FE", "FF"]
    assert shop.rows("silver.firsts", "hex(word)", "offset") == [
        (word, {"FF": 0, "FE": 1, "EDA080": 2, "EFBFBD": 3, "30": 4, "31": 9, "32": 14}[word]) for word in words
    ]
    assert shop.rows("silver.lasts", "hex(word)", "offset") == [
        (word, {"FF": 10, "FE": 11, "EDA080": 12, "EFBFBD": 13, "30": 4, "31": 9, "32": 14}[word]) for word in words
    ]
