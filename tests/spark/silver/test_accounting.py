"""Every row of a batch is in exactly one place, and counted there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from silver_line import SilverLine, balanced

from lodestream import Json, Kafka, Pipeline

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
