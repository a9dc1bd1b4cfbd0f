"""The whole pipeline on its own data, in a scratch copy: nothing here is mocked."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from lodestream.testing import Ran, run_once

PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run_once(PROJECT, tmp_path_factory.mktemp("project"))


def test_bronze_keeps_every_line(ran: Ran) -> None:
    assert len(ran.rows("bronze.orders_raw")) == 7


def test_an_order_that_comes_twice_counts_once(ran: Ran) -> None:
    assert sorted(row["order_id"] for row in ran.rows("silver.orders")) == ["o-1", "o-2", "o-3", "o-4", "o-6"]


def test_a_negative_amount_goes_to_the_dead_letters(ran: Ran) -> None:
    assert len(ran.rows("silver.orders__dead")) == 1


def test_revenue_is_the_sum_of_the_good_orders(ran: Ran) -> None:
    revenue = {(row["day"], row["region"]): row["revenue"] for row in ran.rows("gold.daily_revenue")}
    assert revenue == {
        (date(2024, 1, 1), "north"): Decimal("24.25"),
        (date(2024, 1, 1), "south"): Decimal("35.50"),
        (date(2024, 1, 2), "north"): Decimal("112.10"),
    }
