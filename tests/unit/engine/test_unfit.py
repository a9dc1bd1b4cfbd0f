"""What a Gold table cannot keep is refused when it is planned, with the place and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lodestream import Json, Kafka, Pipeline
from lodestream.config import Config
from lodestream.contracts import Record, column
from lodestream.engine.plan import make_plan
from lodestream.engine.project import Project
from lodestream.engine.unfit import unfit


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
