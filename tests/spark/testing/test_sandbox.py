"""The testing kit itself: what a test gives arrives as the source would bring it, and a death is a death."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from pyspark.sql import DataFrame

from lodestream import Avro, Json, Kafka, Pipeline, Stream
from lodestream.errors import ConfigError, UserCodeError
from lodestream.serving import Change, Delivery, Outlet, Parquet, Sink
from lodestream.testing import Event, Sandbox
from lodestream.testing.sandbox import POINTS

NOON = datetime(2024, 3, 31, 12, 0, tzinfo=UTC)
ORDERS = "id int, at timestamp_ntz, amount decimal(10,2)"


def pipeline(folder: Path) -> Pipeline:
    found = Pipeline("kit")
    found.bronze("orders_raw", Kafka("orders"))
    found.bronze("ticks", Stream("rate"))
    (folder / "zones.csv").write_text("zone,name\n1,North\n")
    found.reference("zones", str(folder / "zones.csv"), schema="zone int, name string", keys="zone", history=True)

    @found.silver(decode=Json(ORDERS), keys="id", expect={"positive": ("amount > 0", "quarantine")})
    def orders(orders_raw: DataFrame) -> DataFrame:
        return orders_raw

    found.gold("daily", sql="SELECT cast(at AS date) AS day, sum(amount) AS total FROM silver.orders GROUP BY 1")
    return found


@pytest.fixture(scope="module")
def box(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    folder = tmp_path_factory.mktemp("box")
    with Sandbox(pipeline(folder), folder / "state") as box:
        yield box


def order(number: int, amount: object = "1.50") -> dict[str, Any]:
    return {"id": number, "at": datetime(2024, 3, 31, 2, 30), "amount": Decimal(str(amount))}


def held(box: Sandbox) -> list[int]:
    return sorted(row["id"] for row in box.rows("silver.orders"))


def test_given_events_are_the_bronze_rows_of_their_source(box: Sandbox) -> None:
    box.freeze(NOON)
    box.given("bronze.orders_raw", [Event(order(1), key="k", headers={"h": b"\x00"}), b"{", None])
    box.given("bronze.ticks", [{"value": 7, "timestamp": NOON}], columns="timestamp timestamp, value bigint")
    box.run()
    first, broken, tombstone = sorted(box.rows("bronze.orders_raw"), key=lambda row: row["offset"])
    assert (first["key"], first["headers"], first["topic"]) == (b"k", [{"key": "h", "value": b"\x00"}], "orders")
    assert first["value"] == b'{"id": 1, "at": "2024-03-31T02:30:00", "amount": 1.50}'
    assert (broken["value"], tombstone["value"]) == (b"{", None)
    assert {row["timestamp"] for row in (first, broken, tombstone)} == {NOON}, "the clock stands still"
    assert [(row["value"], row["timestamp"]) for row in box.rows("bronze.ticks")] == [(7, NOON)]
    assert held(box) == [1]
    assert len(box.dead("silver.orders")) == 2


def test_each_event_gets_its_verdict(box: Sandbox) -> None:
    good, negative, broken = box.judge("silver.orders", [order(2), order(3, -1), b"nonsense"])
    assert good.accepted
    assert negative.reasons == ("expect: positive",)
    assert not broken.accepted


@pytest.mark.parametrize("point", POINTS)
def test_a_death_at_any_instant_loses_and_doubles_nothing(box: Sandbox, point: str) -> None:
    number = 100 + list(POINTS).index(point)
    box.given("bronze.orders_raw", [order(number)])
    box.kill_at(point, "silver.orders")
    assert (number in held(box)) == (point == "published")
    box.run()
    assert held(box).count(number) == 1
    box.replay_last_batch()
    assert held(box).count(number) == 1


def test_a_death_without_a_batch_to_die_in_is_told(box: Sandbox) -> None:
    box.run()
    with pytest.raises(ConfigError, match="did not reach 'publish'"):
        box.kill_at("publish", "silver.orders")


def test_reference_rows_are_loaded_when_the_clock_says(box: Sandbox) -> None:
    zones = Path(box.config.root).parent / "zones.csv"
    box.run()
    zones.write_text("zone,name\n1,South\n")
    box.freeze(datetime(2024, 4, 1, tzinfo=UTC))
    box.run()
    told = {row["name"]: row["valid_from"] for row in box.rows("silver.zones")}
    assert told["South"].astimezone(UTC) == datetime(2024, 4, 1, tzinfo=UTC)


def test_given_rows_then_table(spark: Any, tmp_path: Path) -> None:
    """A query alone: the tables it reads are given, nothing before them runs."""
    found = Pipeline("alone")
    found.bronze("raw", Kafka("raw"))

    @found.silver(decode=Avro(schema='{"type": "record", "name": "r", "fields": []}'))
    def sales(raw: DataFrame) -> DataFrame:
        return raw

    found.gold("daily", sql="SELECT day, sum(amount) AS total FROM silver.sales GROUP BY day")

    @found.gold(keys="day")
    def worst(sales: DataFrame) -> DataFrame:
        raise ValueError("no day was bad")

    columns = "day date, amount decimal(10,2)"
    with Sandbox(found, tmp_path) as box:
        box.given("silver.sales", [{"day": date(2024, 1, 1), "amount": Decimal("0.10")}], columns=columns)
        box.run(only=["gold.daily"])
        box.given("silver.sales", [{"day": date(2024, 1, 1), "amount": Decimal("0.20")}], columns=columns)
        box.run(only=["gold.daily"])
        assert box.rows("gold.daily") == [{"day": date(2024, 1, 1), "total": Decimal("0.30")}]
        with pytest.raises(UserCodeError, match="worst"):
            box.run()
        with pytest.raises(ConfigError, match="is read as Avro"):
            box.given("bronze.raw", [{"a": 1}])
        with pytest.raises(ConfigError, match="did you mean amount"):
            box.given("silver.sales", [{"amont": 1}], columns=columns)


def test_a_sink_is_given_the_changes_of_a_keyed_table_as_spark_wrote_them(spark: Any, tmp_path: Path) -> None:
    found = Pipeline("keyed")
    found.bronze("raw", Kafka("people"))

    @found.silver(decode=Json("id int, name string, n int"), keys="id", sequence_by="n", delete_when="name = 'gone'")
    def people(raw: DataFrame) -> DataFrame:
        return raw

    given: list[Change] = []
    with Sandbox(found, tmp_path / "state") as box:
        for batch in ([(1, "ann"), (2, "bob"), (3, "cat")], [(2, "rob"), (3, "gone")]):
            box.given("bronze.raw", [{"id": key, "name": name, "n": len(given) + 1} for key, name in batch])
            box.run()
            assert box.deliver("silver.people", Given(given)) > 0
        assert box.deliver("silver.people", Given(given)) == 0
        file = tmp_path / "people.parquet"
        box.deliver("silver.people", Parquet(file))
        rows = box.rows("silver.people")
    kept = Counter[str]()
    for one in given:
        assert set(one.row) == {"id", "name", "n"}
        kept[one.row["name"]] += one.weight
    assert +kept == {"ann": 1, "rob": 1}
    assert sorted(parquet.read_table(file).to_pylist(), key=str) == [
        {"id": 1, "name": "ann", "n": 1},
        {"id": 2, "name": "rob", "n": 4},
    ]
    assert sorted(rows, key=str) == parquet.read_table(file).sort_by("id").to_pylist(), "without columns of ours"


@dataclass(frozen=True)
class Given(Sink):
    changes: list[Change]

    def open(self, table: str) -> Outlet:
        return _Given(self.changes)


class _Given(Outlet):
    def __init__(self, changes: list[Change]) -> None:
        self._changes = changes

    def deliver(self, delivery: Delivery) -> None:
        self._changes.extend(delivery.changes)
