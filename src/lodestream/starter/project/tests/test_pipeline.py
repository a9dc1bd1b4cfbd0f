"""The pipeline on given orders: real tables in a scratch folder, nothing is mocked, no broker is needed."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from lodestream.testing import Sandbox

PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Spark takes seconds to start, so the tests share one sandbox; each looks at the orders of a region of its own."""
    with Sandbox(PROJECT, tmp_path_factory.mktemp("project")) as box:
        yield box


def order(number: str, amount: object, region: str) -> dict[str, object]:
    return {"order_id": number, "ordered_at": "2024-01-01T09:15:00", "region": region, "amount": amount}


def revenue(box: Sandbox, region: str) -> dict[date, Decimal]:
    return {row["day"]: row["revenue"] for row in box.rows("gold.daily_revenue") if row["region"] == region}


def test_revenue_is_the_sum_of_the_orders(box: Sandbox) -> None:
    box.given("bronze.orders_raw", [order("o-1", 20, "North"), order("o-2", 4.25, " north ")])
    box.run()
    assert revenue(box, "north") == {date(2024, 1, 1): Decimal("24.25")}


def test_what_breaks_the_contract_is_refused_with_the_reason(box: Sandbox) -> None:
    cases = [order("o-3", 1, "east"), order("o-4", -3, "east"), {"order_id": "o-5"}, b"not json"]
    good, negative, empty, broken = box.judge("silver.orders", cases)
    assert good.accepted
    assert negative.reasons == ("rule: amount is positive",)
    assert {"ordered_at is null", "region is null", "amount is null"} <= set(empty.reasons)
    assert not broken.accepted


def test_an_order_that_comes_twice_counts_once(box: Sandbox) -> None:
    box.given("bronze.orders_raw", [order("o-6", 7, "south")])
    box.run()
    box.replay_last_batch()
    assert revenue(box, "south") == {date(2024, 1, 1): Decimal("7.00")}


def test_a_run_that_dies_loses_and_doubles_nothing(box: Sandbox) -> None:
    box.given("bronze.orders_raw", [order("o-7", 9, "west")])
    box.kill_at("publish", "silver.orders")
    assert revenue(box, "west") == {}
    box.run()
    assert revenue(box, "west") == {date(2024, 1, 1): Decimal("9.00")}
