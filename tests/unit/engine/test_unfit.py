"""What a Gold table cannot keep is refused when it is planned, with the place and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lodestream import Json, Kafka, Pipeline
from lodestream.config import Config
from lodestream.contracts import Record, column
from lodestream.planning.plan import make_plan
from lodestream.planning.project import Project
from lodestream.planning.unfit import unfit


class Trips(Record):
    trip_id: str = column(key=True)
    mail: str | None = column(masking="redact")
    fare: float | None = column()


class Riders(Record):
    mail: str = column(key=True, masking="hash")
    trips: int = column()


def pipeline(sql: str | Path, contract: Any = None) -> Pipeline:
    taxi = Pipeline("taxi")
    taxi.bronze("trips_raw", Kafka("t"))

    @taxi.silver(decode=Json(), contract=Trips)
    def trips(trips_raw: Any) -> Any:
        return trips_raw

    taxi.gold("riders", sql=sql, owner="finance", contract=contract)
    return taxi


def test_masking_in_a_gold_contract_is_refused_and_names_where_it_works(tmp_path: Path) -> None:
    taxi = pipeline("SELECT mail, count(*) AS trips FROM silver.trips GROUP BY mail", Riders)
    graph = taxi.graph()
    refused = unfit(graph, graph["gold.riders"])
    assert refused is not None
    assert "gold.riders cannot mask mail" in refused.what
    assert "silver.trips" in (refused.fix or "")
    assert refused.file == __file__
    assert unfit(graph, graph["silver.trips"]) is None
    plan = make_plan(Project(Config(root=tmp_path), taxi, graph), look=lambda name: None)
    assert plan.blocked
    assert any("cannot mask" in finding.message for finding in plan.findings)


@pytest.mark.parametrize("name", ["_lode", "_lode_x", "_WEIGHT", "_weight_kg", "_batch", "_reasons"])
def test_a_gold_column_named_like_ours_is_refused_at_its_line(name: str, tmp_path: Path) -> None:
    query = tmp_path / "riders.sql"
    query.write_text(f"SELECT mail,\n  count(*) AS {name}\nFROM silver.trips GROUP BY mail\n")
    graph = pipeline(query).graph()
    refused = unfit(graph, graph["gold.riders"])
    assert refused is not None
    assert f"gold.riders cannot have a column {name}" in refused.what
    assert (refused.file, refused.line) == (str(query), 2)


def test_other_names_and_names_inside_a_query_are_the_users_own() -> None:
    inner = (
        "WITH x AS (SELECT mail, 1 AS _weight FROM silver.trips) SELECT mail, count(*) AS _trips FROM x GROUP BY mail"
    )
    graph = pipeline(inner).graph()
    assert unfit(graph, graph["gold.riders"]) is None
    union = "SELECT mail AS _lode FROM silver.trips UNION ALL SELECT mail FROM silver.trips"
    graph = pipeline(union).graph()
    assert unfit(graph, graph["gold.riders"]) is not None


BEHIND_STARS = [
    "SELECT * FROM (SELECT mail AS _lode, fare FROM silver.trips)",
    "SELECT x.* FROM (SELECT mail AS _weight FROM silver.trips) AS x",
    "WITH x AS (SELECT mail AS _lode FROM silver.trips), y AS (SELECT * FROM x) SELECT * FROM y",
    "SELECT * FROM silver.trips t JOIN (SELECT mail, fare AS _batch FROM silver.trips) u USING (mail)",
    "SELECT * FROM (SELECT mail AS _lode FROM silver.trips) UNION ALL SELECT mail FROM silver.trips",
]


@pytest.mark.parametrize("sql", BEHIND_STARS)
def test_a_column_of_ours_that_comes_by_a_star_is_refused(sql: str) -> None:
    graph = pipeline(sql).graph()
    refused = unfit(graph, graph["gold.riders"])
    assert refused is not None
    assert "gold.riders cannot have a column _" in refused.what


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * EXCEPT (_lode) FROM (SELECT mail AS _lode, fare FROM silver.trips)",
        "SELECT y.* FROM (SELECT mail AS _lode FROM silver.trips) x JOIN (SELECT fare FROM silver.trips) y",
        "WITH trips AS (SELECT * FROM silver.trips) SELECT * FROM trips",
        "SELECT mail AS _rank, fare AS _place FROM silver.trips",
    ],
)
def test_a_name_that_does_not_come_out_is_the_users_own(sql: str) -> None:
    graph = pipeline(sql).graph()
    assert unfit(graph, graph["gold.riders"]) is None


def test_a_finding_says_its_place_once(tmp_path: Path) -> None:
    for taxi in (
        pipeline("SELECT mail, count(*) AS trips FROM silver.trips GROUP BY mail", Riders),
        pipeline("SELECT mail AS _lode FROM silver.trips"),
    ):
        plan = make_plan(Project(Config(root=tmp_path), taxi, taxi.graph()), look=lambda name: None)
        (found,) = [one for one in plan.findings if "cannot" in one.message]
        assert str(found).count(__file__) == 1
        assert found.message.startswith("gold.riders cannot")


@pytest.mark.parametrize(("bound", "needed"), [("days(mail)", "a date or a timestamp"), ("hours(mail)", "a timestamp")])
def test_a_period_of_a_text_asks_for_a_date(bound: str, needed: str) -> None:
    taxi = Pipeline("taxi")
    taxi.bronze("trips_raw", Kafka("t"))

    @taxi.silver(decode=Json(), contract=Trips, dedupe_within=bound)
    def trips(trips_raw: Any) -> Any:
        return trips_raw

    graph = taxi.graph()
    refused = unfit(graph, graph["silver.trips"])
    assert refused is not None
    assert refused.fix == f"name a column that is {needed}, or make mail one in the contract"
