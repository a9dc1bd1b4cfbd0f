"""A contract that changes while its table runs: applied to the table in place, or refused with every reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from silver_line import SilverLine

from lodestream import Json, Kafka, Pipeline, failpoints
from lodestream.contracts import Contract, Field, Limits, contract_yaml
from lodestream.errors import ContractError
from lodestream.flows.columns.evolve import evolve_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Make = Callable[[Pipeline], SilverLine]
ORDERS = "silver.orders"
FIRST = (
    Field("id", "bigint", required=True),
    Field("seats", "int"),
    Field("kind", "string", limits=Limits(values=("web", "shop"))),
    Field("place", "struct<lat:double>", fields=(Field("lat", "double"),)),
)
# A wider and renamed field, one more value, a nested one.
GROWN = (
    FIRST[0],
    Field("passengers", "bigint", aliases=("seats",)),
    Field("kind", "string", limits=Limits(values=("web", "shop", "phone"))),
    Field("place", "struct<lat:double,lon:double>", fields=(Field("lat", "double"), Field("lon", "double"))),
)


class Edited:
    """The contract file of a running table."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "order.yaml"
        self._writes = 0

    def write(self, version: str, *fields: Field) -> None:
        self.text(contract_yaml(Contract("orders", version, fields)))

    def text(self, text: str) -> None:
        self.file.write_text(text)
        # Two edits within one tick of the file system's clock would look like one.
        self._writes += 1
        os.utime(self.file, (self._writes, self._writes))


def shop(contract: Path, **options: Any) -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(decode=Json(), contract=contract, **options)
    def orders(events: DataFrame) -> DataFrame:
        return events

    return pipeline


@pytest.fixture
def edited(tmp_path: Path) -> Edited:
    made = Edited(tmp_path)
    made.write("1.0.0", *FIRST)
    return made


def notices(flow: Any, name: str) -> list[dict[str, Any]]:
    return [event.facts() for event in flow.take_notices() if event.name == name]


def test_a_new_version_is_applied_to_the_running_table(line: Make, edited: Edited) -> None:
    shop_line = line(shop(edited.file))
    shop_line.send({"id": 1, "seats": 2, "kind": "web", "place": {"lat": 1.5}, "tip": 7, "note": "x"})
    flows = shop_line.flows()
    (first,) = shop_line.run(flows)[ORDERS]
    assert first.rows["unknown"] == 1, "fields that the contract does not name are counted"
    (told,) = notices(flows[ORDERS], "field.unknown")
    assert told["fields"] == ("note", "tip")

    edited.write(
        "1.1.0",
        *GROWN,
        Field("tip", "decimal(10,2)", description="Card tips."),
    )
    big = 2**40
    shop_line.send(
        {"id": 2, "passengers": big, "kind": "phone", "place": {"lat": 1.0, "lon": 2.0}, "tip": 3.5},
        {"id": 3, "seats": 4, "kind": "web"},
    )
    shop_line.run(flows)
    rows = shop_line.rows(ORDERS, "id", "passengers", "kind", "place.lon", "tip")
    assert [(one[0], one[1], one[2], one[3], None if one[4] is None else str(one[4])) for one in rows] == [
        (1, 2, "web", None, None),
        (2, big, "phone", 2.0, "3.50"),
        (3, 4, "web", None, None),
    ]
    (told,) = notices(flows[ORDERS], "schema-change")
    assert told["contract"] == "orders 1.1.0"
    assert list(told["steps"]) == [
        "rename seats to passengers",
        "widen seats to bigint",
        "add place.lon double",
        "add tip decimal(10,2)",
    ]
    assert any("phone" in change for change in told["changes"])

    # A half-saved file is told of and changes nothing; the next good one counts.
    edited.text("apiVersion: v3.0.2\nkind: DataContr")
    shop_line.send({"id": 4, "tip": 1})
    shop_line.run(flows)
    assert notices(flows[ORDERS], "contract.unreadable")

    # A column that is dropped stays, and new rows have null in it.
    edited.write("2.0.0", FIRST[0], Field("kind", "string"))
    shop_line.send({"id": 5, "kind": "fax", "tip": 9})
    shop_line.run(flows)
    assert shop_line.rows(ORDERS, "id", "kind", "tip")[-1] == (5, "fax", None)

    # What the table cannot become stops the flow, with the reason for each field, and nothing was published.
    edited.write("3.0.0", Field("id", "int", required=True), Field("kind", "array<string>"))
    shop_line.send({"id": 6})
    with pytest.raises(ContractError) as refused:
        shop_line.run(flows)
    assert "id: bigint cannot become int in place" in str(refused.value)
    assert "kind: string cannot become array<string> in place" in str(refused.value)
    assert shop_line.column(ORDERS, "id") == [1, 2, 3, 4, 5]


def test_a_keyed_table_and_its_feed_follow_a_new_version_while_they_run(line: Make, edited: Edited) -> None:
    small, seq = (Field("seq", kind, required=True) for kind in ("int", "bigint"))
    first = Field("id", "int", required=True)
    edited.write("1.0.0", first, *FIRST[1:], small)
    shop_line = line(shop(edited.file, keys="id", sequence_by="seq", delete_when="kind IS NULL"))
    shop_line.send({"id": 1, "seq": 1, "seats": 2, "kind": "web"}, {"id": 2, "seq": 1, "kind": "shop"})
    flows = shop_line.flows()
    shop_line.run(flows)
    edited.write(
        "1.1.0",
        *GROWN,
        seq,
        Field("tip", "decimal(10,2)"),
    )
    big = 2**40
    shop_line.send(
        {"id": 1, "seq": big, "passengers": big, "kind": "phone", "place": {"lat": 1.0, "lon": 2.0}, "tip": 3.5},
        {"id": 2, "seq": 0, "seats": 9, "kind": "web"},
        {"id": big, "seq": big},
    )
    shop_line.run(flows)
    stored = shop_line.rows(ORDERS, "id", "passengers", "kind", "place.lon", "cast(tip AS string)")
    assert stored == [(1, big, "phone", 2.0, "3.50"), (2, None, "shop", None, None)]
    assert shop_line.rows(f"{ORDERS}__marks", "id") == [(big,)], "a delete is remembered, by the wider key"
    feed = shop_line.rows(f"{ORDERS}__changes", "id", "passengers", "kind", "_weight")
    # The row that went is told by its new names; the late change of 2 lost, and is a mark.
    assert {one for one in feed if one[3]} == {
        (1, 2, "web", 1), (1, 2, "web", -1), (1, big, "phone", 1), (2, None, "shop", 1),
    }  # fmt: skip
    assert len(feed) == 5
    (told,) = notices(flows[ORDERS], "schema-change")
    assert "rename seats to passengers" in told["steps"]


def test_two_runs_and_a_crash_take_each_step_once(line: Make, edited: Edited) -> None:
    shop_line = line(shop(edited.file))
    shop_line.send({"id": 1})
    shop_line.run()
    new = Contract("orders", "1.1.0", (*FIRST, Field("tip", "bigint")))

    def other_run() -> None:
        failpoints.disarm()
        assert len(evolve_table(shop_line.lake, ORDERS, new)) == 1

    failpoints.arm("evolve.before", ORDERS, other_run)
    assert evolve_table(shop_line.lake, ORDERS, new) == (), "the other run was first"
    names = [field.name for field in shop_line.spark.table(f"lode.{ORDERS}").schema]
    assert names == ["id", "seats", "kind", "place", "tip"]
    assert evolve_table(shop_line.lake, ORDERS, new) == ()
