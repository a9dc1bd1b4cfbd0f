"""The same test through a real broker: what is given travels over a topic."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from lodestream import Json, Kafka, Pipeline
from lodestream.testing import Event, Sandbox, kafka_broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Any]:
    """As the documentation says it."""
    with kafka_broker() as broker:
        yield broker


def test_given_events_travel_over_the_topic(spark: Any, broker: Any, tmp_path: Path) -> None:
    found = Pipeline("kit")
    found.bronze("orders_raw", Kafka("kit.orders"))

    @found.silver(decode=Json("id int"), keys="id")
    def orders(orders_raw: DataFrame) -> DataFrame:
        return orders_raw

    sent = Event({"id": 1}, key="k", headers={"h": b"1"}, at=datetime(2024, 1, 1, tzinfo=UTC))
    for round in ("first", "second"):  # the second finds none of the first one's events
        with Sandbox(found, tmp_path / round, broker=broker) as box:
            box.given("bronze.orders_raw", [sent, {"id": 2}])
            box.kill_at("publish", "bronze.orders_raw")
            box.run()
            box.replay_last_batch()
            raw = sorted(box.rows("bronze.orders_raw"), key=lambda row: row["offset"])
            assert [row["value"] for row in raw] == [b'{"id": 1}', b'{"id": 2}'] * 2
            assert (raw[0]["key"], raw[0]["headers"]) == (b"k", [{"key": "h", "value": b"1"}])
            assert raw[0]["timestamp"] == datetime(2024, 1, 1, tzinfo=UTC)
            assert sorted(row["id"] for row in box.rows("silver.orders")) == [1, 2]
