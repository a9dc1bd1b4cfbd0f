"""A column that a contract names and nothing fills is told when it is planned, and when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lodestream import Json, Kafka, Pipeline
from lodestream.cli.event_line import event_line
from lodestream.config import Config
from lodestream.contracts import Contract, Field, Record, column
from lodestream.contracts.conform import unfilled
from lodestream.observe import ColumnUnfilled
from lodestream.planning.plan import make_plan
from lodestream.planning.project import Project


class Trips(Record):
    trip_id: str = column(key=True)
    fare: float | None = column()
    tip: float | None = column(source="gratuity")


def warned(folder: Path, sql: str) -> list[str]:
    taxi = Pipeline("taxi")
    taxi.bronze("raw", Kafka("t"))

    @taxi.silver(decode=Json("trip_id string, fare double, gratuity double"))
    def decoded(raw: Any) -> Any:
        return raw

    taxi.silver("trips", sql=sql, contract=Trips)
    plan = make_plan(Project(Config(root=folder), taxi, taxi.graph()), look=lambda name: None)
    assert not plan.blocked
    return [f"{one.severity}: {one.message}" for one in plan.findings if "does not select" in one.message]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT trip_id FROM silver.decoded", "fare, tip"),
        ("SELECT trip_id, fare FROM silver.decoded", "tip"),
        ("SELECT trip_id, FARE, fare * 2 AS tip FROM silver.decoded", "fare"),
        ("SELECT trip_id, fare FROM silver.decoded UNION ALL SELECT trip_id, fare FROM silver.decoded", "tip"),
    ],
)
def test_plan_names_the_columns_that_a_query_leaves_null(sql: str, names: str, tmp_path: Path) -> None:
    assert warned(tmp_path, sql) == [f"warning: silver.trips: its query does not select {names}"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT trip_id, fare, tip FROM (SELECT trip_id, fare, gratuity AS tip FROM silver.decoded)",
        "SELECT trip_id, fare, gratuity FROM silver.decoded",
        "SELECT * FROM silver.decoded",
        "SELECT trip_id, d.* FROM silver.decoded d",
    ],
)
def test_plan_is_silent_where_all_are_selected_or_a_star_hides_them(sql: str, tmp_path: Path) -> None:
    assert warned(tmp_path, sql) == []


def test_required_columns_refuse_their_rows_and_need_no_warning() -> None:
    contract = Contract(
        "c", "1.0.0", (Field("id", "int", required=True), Field("a", "int"), Field("b", "int", source="x"))
    )
    assert unfilled(contract, ["other"]) == ("a", "b")
    assert unfilled(contract, ["a", "x"]) == ()


def test_the_event_says_what_it_means() -> None:
    event = ColumnUnfilled("silver.trips", columns=("tip",), contract="trips 1.0.0")
    assert "silver.trips tip: null in every row, since the function does not return it" in event_line(event).plain
