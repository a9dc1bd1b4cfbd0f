"""Which tables change by key, what follows them, and what is refused before anything runs."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from lodestream import Kafka, Pipeline
from lodestream.contracts import Record, column
from lodestream.errors import DeclarationError
from lodestream.planning.keyed import keyed, leader, row_keys, silver_way
from lodestream.planning.unfit import unfit


def declared(**options: Any) -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.bronze("orders_raw", Kafka("orders"))

    @pipeline.silver(**options)
    def orders(orders_raw: Any) -> Any:
        return orders_raw

    return pipeline


def test_keys_alone_deduplicate_and_make_no_feed() -> None:
    graph = declared(keys="id").graph()
    assert not keyed(graph, "silver.orders")
    assert silver_way(graph, graph["silver.orders"])[0] == "deduplicate"


def test_a_plan_says_how_far_duplicates_are_looked_for() -> None:
    graph = declared(keys="id", partition_by="days(at)").graph()
    assert silver_way(graph, graph["silver.orders"])[1] == "first position of each key wins, in the whole table"
    graph = declared(keys="id", dedupe_within=["days(at)", "region"]).graph()
    assert silver_way(graph, graph["silver.orders"])[1] == "first position of each key wins within days(at), region"


class Visits(Record):
    """A key, a time and a measure."""

    version = "1.0.0"
    owner = "tests"

    id: int = column(key=True)
    at: datetime
    day: date
    weight: float


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ("days(when)", "there is no column when; the columns: id, at, day, weight"),
        ("days(id)", "id is a bigint, which has no days"),
        ("hours(day)", "day is a date, which has no hours"),
        ("weight", "weight is a double, whose values are not held against one another exactly"),
        (("months(day)", "hours(at)", "id"), None),
    ],
)
def test_a_bound_is_a_period_of_a_column_that_the_table_has(bound: Any, said: str | None) -> None:
    graph = declared(contract=Visits, dedupe_within=bound).graph()
    refused = unfit(graph, graph["silver.orders"])
    assert (refused.why if refused else None) == said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keys": "id", "dedupe_within": "bucket(4, id)"}, '"bucket\\(4, id\\)" is no period'),
        ({"keys": "id", "dedupe_within": "dayz(at)"}, "dedupe_within: .* did you mean days"),
        ({"dedupe_within": "days(at)"}, "dedupe_within needs keys"),
        ({"keys": "id", "dedupe_within": "days(at)", "sequence_by": "at"}, "does not go with sequence_by"),
    ],
)
def test_a_bound_that_means_nothing_is_refused_where_it_is_declared(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        declared(**options)


def test_a_bound_is_refused_without_a_key_and_where_a_keyed_table_is_followed() -> None:
    class Loose(Record):
        version, owner = "1.0.0", "tests"
        at: datetime

    graph = declared(contract=Loose, dedupe_within="days(at)").graph()
    refused = unfit(graph, graph["silver.orders"])
    assert refused is not None
    assert "it has no key" in (refused.why or "")
    pipeline = declared(contract=Visits, sequence_by="at")

    @pipeline.silver(keys="id", dedupe_within="days(at)")
    def visits(orders: Any) -> Any:
        return orders

    graph = pipeline.graph()
    refused = unfit(graph, graph["silver.visits"])
    assert refused is not None
    assert refused.why == "it follows silver.orders, whose keys come once"


@pytest.mark.parametrize("options", [{"sequence_by": "at"}, {"delete_when": "op = 'd'"}, {"history": True}])
def test_an_order_a_delete_or_a_history_makes_a_table_keyed(options: dict[str, Any]) -> None:
    graph = declared(keys="id", **options).graph()
    assert keyed(graph, "silver.orders")
    assert row_keys(graph, "silver.orders")[0] == "id"


def test_versions_are_told_apart_by_the_moment_they_begin() -> None:
    graph = declared(keys="id", sequence_by="at", history=True).graph()
    assert row_keys(graph, "silver.orders") == ("id", "valid_from")


def test_a_table_made_from_a_keyed_one_is_keyed_by_the_same_columns() -> None:
    pipeline = declared(keys=["id", "line"], sequence_by="at")

    @pipeline.silver
    def prices(orders: Any) -> Any:
        return orders

    @pipeline.silver
    def totals(prices: Any) -> Any:
        return prices

    graph = pipeline.graph()
    assert leader(graph, graph["silver.totals"]) == "silver.prices"
    assert row_keys(graph, "silver.totals") == ("id", "line")
    assert silver_way(graph, graph["silver.prices"]) == ("upsert", "follows every change of silver.orders", None)


def test_a_lookup_of_a_keyed_table_does_not_make_its_reader_keyed() -> None:
    pipeline = declared(keys="id", sequence_by="at")
    pipeline.bronze("payments_raw", Kafka("payments"))

    @pipeline.silver(lookup="orders")
    def payments(payments_raw: Any, orders: Any) -> Any:
        return payments_raw.join(orders, "id")

    assert not keyed(pipeline.graph(), "silver.payments")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sequence_by": "at", "keys": "id"}, "has ordered its changes already"),
        ({"history": True, "keys": "id"}, "has ordered its changes already"),
        ({"keys": "other"}, "has the keys other"),
    ],
)
def test_what_a_follower_cannot_be_is_refused_with_the_reason(options: dict[str, Any], said: str) -> None:
    pipeline = declared(keys="id", sequence_by="at")

    @pipeline.silver(**options)
    def prices(orders: Any) -> Any:
        return orders

    graph = pipeline.graph()
    with pytest.raises(DeclarationError, match=said):
        leader(graph, graph["silver.prices"])
    assert silver_way(graph, graph["silver.prices"])[0] == "refused"


def test_two_followed_tables_of_which_one_changes_by_key_are_refused() -> None:
    pipeline = declared(keys="id", sequence_by="at")
    pipeline.bronze("payments_raw", Kafka("payments"))

    @pipeline.silver
    def paid(orders: Any, payments_raw: Any) -> Any:
        return orders.join(payments_raw, "id")

    graph = pipeline.graph()
    with pytest.raises(DeclarationError, match=r"follows silver\.orders and bronze\.payments_raw"):
        leader(graph, graph["silver.paid"])


class Customers(Record):
    """One column besides the key is unique."""

    version = "1.0.0"
    owner = "tests"

    id: int = column(key=True)
    mail: str = column(unique=True)


def test_unique_is_refused_where_it_cannot_be_enforced_with_the_place_where_it_can() -> None:
    pipeline = declared(contract=Customers, sequence_by="at")
    assert unfit(pipeline.graph(), pipeline.graph()["silver.orders"]) is None

    @pipeline.silver(contract=Customers)
    def customers(orders: Any) -> Any:
        return orders

    graph = pipeline.graph()
    refused = unfit(graph, graph["silver.customers"])
    assert refused is not None
    assert "silver.customers cannot keep mail unique" in refused.what
    assert refused.fix == "state it in the contract of silver.orders, where the rows arrive"
    graph = declared(contract=Customers, sequence_by="at", history=True).graph()
    versions = unfit(graph, graph["silver.orders"])
    assert versions is not None
    assert "every version" in (versions.why or "")


@pytest.mark.parametrize(
    ("options", "why", "fix"),
    [
        ({}, "it only grows", "give silver.orders keys= and sequence_by=, and look it up in a second table"),
        ({"keys": "id", "sequence_by": "at"}, "not read again", "in a second Silver table that follows silver.orders"),
    ],
)
def test_a_correction_needs_a_table_that_can_look_everything_up_again(
    options: dict[str, Any], why: str, fix: str, tmp_path: Path
) -> None:
    (tmp_path / "zones.csv").write_text("zone,name\n")
    pipeline = Pipeline("shop")
    pipeline.bronze("orders_raw", Kafka("orders"))
    pipeline.reference("zones", str(tmp_path / "zones.csv"), keys="zone")

    @pipeline.silver(corrected_by="zones", **options)
    def orders(orders_raw: Any, zones: Any) -> Any:
        return orders_raw.join(zones, "zone")

    graph = pipeline.graph()
    refused = unfit(graph, graph["silver.orders"])
    assert refused is not None
    assert why in (refused.why or "")
    assert fix in (refused.fix or "")


def test_a_correction_names_a_table_that_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text("zone,name\n")
    for wrong, said in (("orders_raw", "is in the table anyway"), ("zone", "did you mean zones?")):
        pipeline = Pipeline("shop")
        pipeline.bronze("orders_raw", Kafka("orders"))
        pipeline.reference("zones", str(tmp_path / "zones.csv"), keys="zone")

        @pipeline.silver(corrected_by=wrong)
        def orders(orders_raw: Any, zones: Any) -> Any:
            return orders_raw.join(zones, "zone")

        with pytest.raises(DeclarationError, match=said.replace("?", r"\?")):
            pipeline.graph()
