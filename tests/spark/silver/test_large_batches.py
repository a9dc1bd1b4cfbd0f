"""A large batch goes through without being kept: what it publishes is what a small one would."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from silver_line import SilverLine, balanced

from lodestream import Json, Kafka, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Make = Callable[[Pipeline], SilverLine]
POSITIVE = {"positive": ("amount > 0", "quarantine")}
ORDERS, DEAD = "silver.orders", "silver.orders__dead"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lodestream.flows.judging.judged_rows.MOST_WHOLE", 0)


def shop(made: Callable[[DataFrame], DataFrame] = lambda events: events, **options: Any) -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(decode=Json("id bigint, day date, amount double"), **options)
    def orders(events: DataFrame) -> DataFrame:
        return made(events)

    return pipeline


def some_events(seed: int, number: int) -> list[object]:
    """Keys that come again in the batch and later, days without a value, refused and filtered rows, broken events."""
    chance = random.Random(seed)
    days = ["2024-01-01", "2024-01-02", None]
    rows: list[object] = [
        {"id": chance.choice([None, *range(60)]), "day": chance.choice(days), "amount": chance.uniform(-2, 10)}
        for _ in range(number)
    ]
    return [b"{broken" if chance.random() < 0.05 else one for one in rows]


@pytest.mark.parametrize("bound", [{}, {"partition_by": "days(day)", "dedupe_within": "days(day)"}], ids=["", "bound"])
def test_a_large_batch_publishes_what_small_ones_do(
    line: Make, monkeypatch: pytest.MonkeyPatch, bound: dict[str, Any]
) -> None:
    declared = shop(keys=["id"], filters={"worth": "amount < 9"}, expect={**POSITIVE, "small": "amount < 8"}, **bound)
    told: list[Any] = []
    for most in (50_000, 0):
        monkeypatch.setattr("lodestream.flows.judging.judged_rows.MOST_WHOLE", most)
        one = line(declared)
        flows, batches = one.flows(), []
        for batch in range(3):
            one.send(*some_events(batch, 80), {"id": 1000 + batch, "day": None, "amount": 1, "new": 1})
            batches += one.run(flows)[ORDERS]
        assert balanced(batches)
        counts = [dict(batch.rows) for batch in batches]
        stamped = [dict(found.stamp.rows) for found in one.lake.store(ORDERS).ancestors(one.lake.store(ORDERS).head())
                   if found.stamp is not None]  # fmt: skip
        letters = one.rows(DEAD, "offset", "reasons", "value", "headers", "timestamp", "state", "beside", "batch")
        told.append((one.rows(ORDERS, "*"), letters, counts, stamped))
        for table in (ORDERS, DEAD, "bronze.events"):
            one.spark.sql(f"DROP TABLE lode.{table}")
    assert told[0] == told[1]
    assert any(one["duplicates"] and one["dead"] and one["unknown"] for one in told[0][2]), "the events show little"


@pytest.mark.usefixtures("large")
def test_only_the_raw_events_of_refused_rows_are_kept(line: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from lodestream.flows.judging.judged_rows import Verdicts

    kept: list[DataFrame] = []
    keep = Verdicts.keep
    monkeypatch.setattr(Verdicts, "keep", lambda self, frame: keep(self, kept.append(frame) or frame))
    # Of the others some are looked at for fields that nobody knows: not of these.
    monkeypatch.setattr("lodestream.sources.codecs.frame.UnknownFields.looked", lambda _self, _rows: "false")
    raw: list[int] = []
    release = Verdicts.release
    monkeypatch.setattr(
        Verdicts, "release",
        lambda self: raw.extend(one.where("_lode IS NOT NULL").count() for one in kept) or release(self),
    )  # fmt: skip
    one = line(shop(keys=["id"], expect=POSITIVE))
    one.send(*[{"id": number, "day": None, "amount": number - 3} for number in range(10)])
    (batch,) = one.run()[ORDERS]
    assert (batch.rows["out"], batch.rows["dead"]) == (6, 4)
    assert raw == [4], "a batch keeps one frame, with the events that are refused"
    assert not {"id", "amount"} & set(kept[0].columns), "rows are made again, not kept"


@pytest.mark.usefixtures("large")
def test_a_row_that_code_judges_otherwise_the_second_time_is_in_one_place(line: Make) -> None:
    def by_chance(events: DataFrame) -> DataFrame:
        from pyspark.sql.functions import rand

        return events.withColumn("luck", rand())

    one = line(shop(by_chance, expect={"lucky": ("luck > 0.5", "quarantine")}))
    one.send(*[{"id": number, "day": None, "amount": 1} for number in range(200)])
    (batch,) = one.run()[ORDERS]
    assert balanced([batch])
    found = one.column(ORDERS, "id") + one.column(
        DEAD, "cast(get_json_object(cast(value AS string), '$.id') AS bigint)"
    )
    assert sorted(found) == list(range(200)), "an event is a row or a letter, never both and never neither"


@pytest.mark.usefixtures("large")
def test_a_column_that_nobody_counts_may_raise(line: Make) -> None:
    """It is computed when rows are written, and not before: the row is a letter all the same."""

    def worth(events: DataFrame) -> DataFrame:
        from pyspark.sql.functions import expr

        return events.withColumn("share", expr("100 div cast(amount AS bigint)"))

    one = line(shop(worth))
    one.send(*[{"id": number, "day": None, "amount": number} for number in range(5)])
    (batch,) = one.run()[ORDERS]
    assert (batch.rows["out"], batch.rows["dead"]) == (4, 1)
    ((reasons,),) = one.rows(DEAD, "reasons")
    assert "DIVIDE_BY_ZERO" in reasons[0]
    assert one.column(ORDERS, "id") == [1, 2, 3, 4]
