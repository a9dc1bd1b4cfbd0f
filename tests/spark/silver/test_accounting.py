"""Every row of a batch is in exactly one place, and counted there."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pytest
from silver_line import SilverLine, balanced

from lodestream import Json, Kafka, Pipeline
from lodestream.errors import AuditFailed, UserCodeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.usefixtures("summer_time", "size")
Make = Callable[[Pipeline], SilverLine]


def keyed() -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(
        decode=Json("id bigint, kind string"),
        keys=["id"],
        filters={"is an order": "kind = 'order'"},
        expect={"is one of the first": "id < 3"},
    )
    def orders(events: DataFrame) -> DataFrame:
        return events

    return pipeline


def test_duplicates_within_and_across_batches_are_counted(line: Make) -> None:
    shop = line(keyed())
    shop.send(*[{"id": number, "kind": "order"} for number in (1, 2, 2, 3, 3, 3)])
    shop.send({"id": 4, "kind": "refund"}, b"{broken", {"kind": "order"}, {"kind": "order"})
    flows = shop.flows()
    (first,) = shop.run(flows)["silver.orders"]
    assert dict(first.rows) == {
        "in": 10, "out": 3, "dead": 3, "filtered": 1, "duplicates": 3, "kept": 6, "warned": 3,
    }  # fmt: skip
    shop.send(*[{"id": number, "kind": "order"} for number in (3, 4, 4, 1)])
    (second,) = shop.run(flows)["silver.orders"]
    assert (second.rows["out"], second.rows["duplicates"]) == (1, 3)
    assert balanced([first, second])
    assert shop.column("silver.orders", "id") == [1, 2, 3, 4]
    reasons = [row[0] for row in shop.rows("silver.orders__dead", "reasons")]
    assert sorted(reasons)[:2] == [["id is null"], ["id is null"]], "rows without a key must not pass for duplicates"


@pytest.mark.parametrize(
    "options",
    [{}, {"partition_by": "days(day)"}, {"partition_by": "days(day)", "dedupe_within": "days(day)"}],
    ids=["plain", "partitioned", "bounded"],
)
def test_a_directory_of_keys_spares_the_search_and_finds_the_same_duplicates(
    line: Make, monkeypatch: pytest.MonkeyPatch, options: Any, size: str
) -> None:
    """The first event of each key (and day, where the declaration says so) stays, however the events are cut."""
    searches = spied(monkeypatch)
    shop = line(daily(options))
    chance = random.Random(7)
    days = ["2024-01-01", "2024-01-02", None]
    some = [{"id": chance.randrange(40), "day": chance.choice(days), "note": str(n)} for n in range(120)]
    fresh = [{"id": number, "day": "2024-01-03", "note": "fresh"} for number in range(100, 140)]
    flows, batches, sent = shop.flows(), [], []
    mixed = [*some[90:], fresh[0], {**fresh[1], "id": 200}]
    for events, known in ((some[:50], False), (some[50:90], True), (fresh, False), (mixed, True)):
        del searches[:]
        shop.send(*events)
        batches += shop.run(flows)["silver.orders"]
        assert size == "large" or bool(searches) is known, "new keys are looked for in no file"
        sent += events
        if events is fresh:  # maintenance on top changes no row
            shop.spark.sql(
                "CALL lode.system.rewrite_data_files(table => 'silver.orders', options => map('rewrite-all', 'true'))"
            )
    first = {(one["id"], one["day"] if "dedupe_within" in options else 0): one for one in reversed(sent)}
    assert shop.rows("silver.orders", "id", "note") == sorted(
        ((one["id"], one["note"]) for one in first.values()), key=repr
    )
    assert balanced(batches)
    assert sum(batch.rows["duplicates"] for batch in batches) == len(sent) - len(first)


def daily(options: Any) -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(decode=Json("id bigint, day date, note string"), keys=["id"], **options)
    def orders(events: DataFrame) -> DataFrame:
        return events

    return pipeline


def spied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Directories from the first batch on, as large tables have them, and a note of each search in the table."""
    from lodestream.flows.directory import directory
    from lodestream.flows.judging import duplicates

    made: list[str] = []
    find = duplicates.rows_of
    monkeypatch.setattr(duplicates, "rows_of", lambda *given: made.append("search") or find(*given))
    monkeypatch.setattr(directory, "CALM", 1)
    monkeypatch.setattr(directory, "beside", at_once)
    return made


def at_once(make: Callable[[], Any]) -> Future[Any]:
    made: Future[Any] = Future()
    made.set_result(make())
    return made


def carts(keep: str, **options: Any) -> Pipeline:
    """Carts, exploded into items by the given expression, and a table made from these."""
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(decode=Json("id bigint, items array<string>"), keys=["id", "item"], **options)
    def items(events: DataFrame) -> DataFrame:
        return events.selectExpr("id", f"{keep} AS item", "_lode")

    fruit = {"allow_no_rows": True} if options.get("allow_no_rows") else {}
    pipeline.silver("fruit", sql="SELECT id, item FROM silver.items WHERE item <> 'nail'", **fruit)
    return pipeline


def test_a_distinct_that_could_have_no_effect_is_refused(line: Make) -> None:
    """Three events a, a, b would give three rows, because each carries its raw event; one over a lookup is fine."""
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))
    decode = Json("id string")
    pipeline.silver("queried", sql="SELECT DISTINCT id FROM bronze.events", decode=decode)
    pipeline.silver("first", sql="SELECT id FROM bronze.events", decode=decode, keys="id")
    pipeline.silver(
        "known",
        sql="SELECT e.id FROM bronze.events e LEFT JOIN (SELECT DISTINCT id FROM silver.first) f ON f.id = e.id",
        decode=decode,
        lookup=["silver.first"],
    )

    @pipeline.silver(decode=decode)
    def called(events: DataFrame) -> DataFrame:
        return events.distinct()

    shop = line(pipeline)
    shop.send({"id": "a"}, {"id": "a"}, {"id": "b"})
    flows = shop.flows()
    flows["bronze.events"].step(1000)
    for name in ("silver.queried", "silver.called"):
        with pytest.raises(UserCodeError, match=f"{name}: it removes duplicates, which has no effect") as refused:
            flows[name].step(1000)
        assert 'keys="id"' in str(refused.value.fix)
    for name in ("silver.first", "silver.known"):
        flows[name].step(1000)
    assert (shop.column("silver.first", "id"), shop.column("silver.known", "id")) == (["a", "b"], ["a", "a", "b"])


def test_a_row_that_vanishes_is_noticed_although_another_became_two(line: Make) -> None:
    shop = line(carts("explode(items)"))
    shop.send({"id": 1, "items": ["apple", "nail"]}, {"id": 2, "items": []}, b"{")
    flows = shop.flows()
    flows["bronze.events"].step(1000)
    with pytest.raises(AuditFailed, match=r"silver.items: 1 of 3 input rows are unaccounted for") as refused:
        flows["silver.items"].step(1000)
    assert "allow_no_rows=True" in str(refused.value.fix)
    # Kept as a row without an item, that is a dead letter: its key is incomplete.
    shop.declare(carts("explode_outer(items)"))
    flows = shop.flows()
    assert shop.silver("silver.items").terms.rows.multiplies
    published = flows["silver.items"].step(1000)
    assert published is not None
    assert (published.rows["in"], published.rows["out"], published.rows["dead"]) == (4, 2, 2)
    with pytest.raises(AuditFailed, match=r"silver.fruit: 1 of 2 input rows are unaccounted for"):
        flows["silver.fruit"].step(1000)
    # Code that gives a row for each needs no look at the events.
    shop.declare(carts("upper(items[0])"))
    assert not shop.silver("silver.items").terms.rows.multiplies


def test_events_that_may_give_no_row_are_counted_and_stop_nothing(line: Make) -> None:
    shop = line(carts("explode(items)", allow_no_rows=True))
    shop.send({"id": 1, "items": ["apple", "nail"]}, {"id": 2, "items": []}, b"{", {"id": 3})
    done = shop.run()
    (batch,) = done["silver.items"]
    assert (batch.rows["in"], batch.rows["out"], batch.rows["dead"], batch.rows["no_rows"]) == (3, 2, 1, 2)
    assert shop.column("silver.fruit", "item") == ["apple"]
