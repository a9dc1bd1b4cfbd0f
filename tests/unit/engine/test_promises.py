"""A contract that changes is held against the one its table is kept under, for the sake of those who read it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lodestream import Json, Kafka, Pipeline
from lodestream.config import Config
from lodestream.contracts import Record, column
from lodestream.contracts.model import Contract
from lodestream.errors import CatalogUnavailable, ContractError
from lodestream.planning.project import Project
from lodestream.planning.reader_promises import promise_findings, refusal
from lodestream.tables.promised import TEXT, TITLE, promise, promised


class Trips(Record):
    """One trip."""

    version = "1.2.0"
    owner = "mobility"

    trip_id: str = column(key=True)
    fare: float | None = column()
    tip: float | None = column()
    zone: str | None = column()


SQL = "SELECT zone, sum(FARE) AS fares, count(*) AS n FROM silver.trips GROUP BY zone"


@pytest.fixture
def project(tmp_path: Any) -> Project:
    taxi = Pipeline("taxi")
    taxi.bronze("trips_raw", Kafka("t"))

    @taxi.silver(decode=Json(), contract=Trips)
    def trips(trips_raw: Any) -> Any:
        return trips_raw

    taxi.gold("fares", sql=SQL, owner="finance")

    @taxi.silver(filters={"tipped": "tip > 0"})
    def tipped(trips: Any) -> Any:
        return trips

    return Project(Config(root=tmp_path), taxi, taxi.graph())


def stored(contract: Contract) -> Any:
    """The catalog of a lake whose trips are kept under a contract."""
    return lambda name: promise(contract) if name == "silver.trips" else None


def field(name: str, **changes: Any) -> Contract:
    """The contract before: the declared one with a field as it was."""
    now = Trips.contract()
    return replace(now, fields=tuple(replace(one, **changes) if one.name == name else one for one in now.fields))


def test_what_is_recorded_is_the_contract_itself() -> None:
    contract = Trips.contract()
    recorded = promise(contract)
    assert recorded[TITLE] == "trips 1.2.0"
    assert promised(recorded) == contract
    assert promised({}) is None
    assert promised({TEXT: "bm90IHppcHBlZA=="}) is None, "an unreadable record is no promise"


def test_the_same_contract_is_no_finding(project: Project) -> None:
    assert promise_findings(project, stored(Trips.contract())) == []
    assert promise_findings(project, lambda name: None) == [], "nothing has run yet"


def test_a_breaking_change_names_the_field_its_readers_and_the_way(project: Project) -> None:
    before = field("fare", type="decimal(10,2)")
    [found] = [one for one in promise_findings(project, stored(before)) if one.severity == "error"]
    assert found.message == "silver.trips: fare changed from decimal(10,2) to double"
    assert "read by gold.fares (owner finance), silver.tipped (no owner)" in found.why
    assert "kept under trips 1.2.0" in found.why
    assert found.fix.startswith("add a second column of type double, fill both, move the readers, then remove fare")
    assert "lode plan --accept silver.trips" in found.fix


def test_a_query_that_does_not_name_the_field_is_not_broken_by_it(project: Project) -> None:
    found = refusal(project.graph, project.graph["silver.trips"], Trips.contract(), field("tip", type="string"))
    assert isinstance(found, ContractError)
    assert "silver.tipped" in str(found.why), "a function hides which columns it reads"
    assert "gold.fares" not in str(found.why)
    assert found.exit_code == 2


def test_a_removed_field_and_a_changed_key_break_whoever_relies_on_them(project: Project) -> None:
    now = Trips.contract()
    removed = replace(now, fields=(*now.fields, replace(now["zone"], name="borough")))
    [lost] = [one for one in promise_findings(project, stored(removed)) if "borough" in one.message]
    assert "silver.tipped" in lost.why
    assert "gold.fares" not in lost.why
    rekeyed = refusal(project.graph, project.graph["silver.trips"], now, replace(now, keys=("trip_id", "zone")))
    assert "gold.fares (owner finance), silver.tipped" in str(rekeyed and rekeyed.why)


def test_what_breaks_nobody_is_allowed(project: Project) -> None:
    now = Trips.contract()
    table = project.graph["silver.trips"]
    narrower = replace(now, fields=tuple(one for one in now.fields if one.name != "tip"))
    assert refusal(project.graph, table, now, narrower) is None, "an optional field was added"
    found = promise_findings(project, stored(narrower))
    assert [(one.severity, one.message) for one in found] == [
        ("warning", "silver.trips: its contract changed and is still version 1.2.0")
    ]
    assert "raise the version to 1.3.0 at least" in found[0].fix
    assert "tip added as an optional double" in found[0].why
    alone = project.graph.select(["silver.trips"])
    unread = replace(alone, everything={"silver.trips": table, "bronze.trips_raw": project.graph["bronze.trips_raw"]})
    assert refusal(unread, table, now, field("fare", type="string")) is None, "no reader, no refusal"


def test_a_catalog_that_does_not_answer_is_a_warning(project: Project) -> None:
    def silent(name: str) -> None:
        raise CatalogUnavailable("the catalog does not answer")

    [found] = promise_findings(project, silent)
    assert (found.severity, found.why) == ("warning", "the catalog does not answer")
