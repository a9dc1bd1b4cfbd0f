"""Every row of a batch is in exactly one place, and counted there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from silver_line import SilverLine, balanced

from lodestream import Json, Kafka, Pipeline
from lodestream.errors import AuditFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Make = Callable[[Pipeline], SilverLine]


def keyed() -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(decode=Json("id bigint, kind string"), keys=["id"], filters={"is an order": "kind = 'order'"})
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
        "in": 10, "out": 3, "dead": 3, "filtered": 1, "duplicates": 3, "kept": 6, "warned": 0,
    }  # fmt: skip
    shop.send(*[{"id": number, "kind": "order"} for number in (3, 4, 4, 1)])
    (second,) = shop.run(flows)["silver.orders"]
    assert (second.rows["out"], second.rows["duplicates"]) == (1, 3)
    assert balanced([first, second])
    assert shop.column("silver.orders", "id") == [1, 2, 3, 4]
    reasons = [row[0] for row in shop.rows("silver.orders__dead", "reasons")]
    assert sorted(reasons)[:2] == [["id is null"], ["id is null"]], "rows without a key must not pass for duplicates"


def carts(keep: str, **options: Any) -> Pipeline:
    """Carts, exploded into items by the given expression, and a table made from these."""
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(decode=Json("id bigint, items array<string>"), keys=["id", "item"], **options)
    def items(events: DataFrame) -> DataFrame:
        return events.selectExpr("id", f"{keep} AS item", "_lode")

    pipeline.silver("fruit", sql="SELECT id, item FROM silver.items WHERE item <> 'nail'")
    return pipeline


def test_a_row_that_vanishes_is_noticed_although_another_became_two(line: Make) -> None:
    shop = line(carts("explode(items)"))
    shop.send({"id": 1, "items": ["apple", "nail"]}, {"id": 2, "items": []}, b"{")
    flows = shop.flows()
    flows["bronze.events"].step(1000)
    with pytest.raises(AuditFailed, match=r"silver.items: 1 of 3 input rows are unaccounted for"):
        flows["silver.items"].step(1000)
    # Kept as a row without an item, that is a dead letter: its key is incomplete.
    shop.declare(carts("explode_outer(items)"))
    flows = shop.flows()
    assert flows["silver.items"].multiplies
    published = flows["silver.items"].step(1000)
    assert published is not None
    assert (published.rows["in"], published.rows["out"], published.rows["dead"]) == (4, 2, 2)
    with pytest.raises(AuditFailed, match=r"silver.fruit: 1 of 2 input rows are unaccounted for"):
        flows["silver.fruit"].step(1000)
    # Code that gives a row for each needs no look at the events.
    shop.declare(carts("upper(items[0])"))
    assert not shop.flows()["silver.items"].multiplies
