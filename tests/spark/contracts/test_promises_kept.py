"""The contract that a table is kept under is recorded in it, and the next one is held against it before it changes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

sys.path.insert(0, str(Path(__file__).parents[1] / "silver"))

from silver_line import SilverLine

from lodestream import Json, Kafka, Pipeline
from lodestream.contracts import Record, column
from lodestream.errors import ContractError
from lodestream.planning.plan import make_plan
from lodestream.planning.reader_promises import accept_contracts
from lodestream.tables.promised import recorded


class First(Record):
    name = "trips"
    version = "1.0.0"

    trip_id: int = column("bigint")
    fare: float | None = column()
    zone: str | None = column()


class Wider(First):
    name = "trips"
    version = "1.1.0"

    tip: float | None = column()


class Broken(Record):
    name = "trips"
    version = "2.0.0"

    trip_id: int = column("bigint")
    fare: str | None = column()
    zone: str | None = column()


def declared(contract: type[Record], **options: Any) -> Pipeline:
    pipeline = Pipeline("taxi")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(decode=Json(), contract=contract, **options)
    def trips(events: DataFrame) -> DataFrame:
        return events

    pipeline.gold("fares", sql="SELECT zone, sum(fare) AS fares FROM silver.trips GROUP BY zone", owner="finance")
    return pipeline


def test_a_contract_that_breaks_a_reader_is_refused_before_anything_changes(lake: Any) -> None:
    line = SilverLine(lake.config, lake.spark, declared(First))
    line.send({"trip_id": 1, "fare": 2.5, "zone": "a"})
    line.run()
    assert recorded(line.lake.store("silver.trips")) == First.contract()
    assert make_plan(line.project).findings == ()
    assert make_plan(line.project).changes == ()

    line.declare(declared(Wider))
    line.send({"trip_id": 2, "fare": 3.5, "zone": "a", "tip": 1.0})
    assert not make_plan(line.project).blocked
    foretold = make_plan(line.project).changes
    assert [(one.table, one.effect) for one in foretold] == [("silver.trips", "alter")]
    assert "add tip double" in foretold[0].why
    line.run()
    assert recorded(line.lake.store("silver.trips")) == Wider.contract()
    assert line.rows("silver.trips", "trip_id", "tip") == [(1, None), (2, 1.0)]

    line.declare(declared(Broken))
    plan = make_plan(line.project)
    assert plan.blocked
    said = "\n".join(map(str, plan.findings))
    assert "fare changed from double to string" in said
    assert "read by gold.fares (owner finance)" in said
    assert "add a second column of type string" in said
    line.send({"trip_id": 3, "fare": "4.5", "zone": "a"})
    columns = line.lake.whole("silver.trips").columns
    with pytest.raises(ContractError, match=r"contract trips 2\.0\.0 would break"):
        line.run()
    assert line.lake.whole("silver.trips").columns == columns
    assert recorded(line.lake.store("silver.trips")) == Wider.contract()

    assert accept_contracts(line.project, ["silver.trips"]) == ["silver.trips is kept under trips 2.0.0 from now on"]
    assert recorded(line.lake.store("silver.trips")) == Broken.contract()
    assert not make_plan(line.project).blocked


def test_the_contract_of_a_keyed_table_is_held_against_the_one_before(lake: Any) -> None:
    keyed = {"keys": "trip_id", "sequence_by": "fare"}
    line = SilverLine(lake.config, lake.spark, declared(First, **keyed))
    line.send({"trip_id": 1, "fare": 2.5, "zone": "a"})
    line.run()
    assert recorded(line.lake.store("silver.trips")) == First.contract()

    line.declare(declared(Broken, **keyed))
    assert make_plan(line.project).blocked
    line.send({"trip_id": 1, "fare": "4.5", "zone": "a"})
    with pytest.raises(ContractError, match=r"contract trips 2\.0\.0 would break"):
        line.run()
    assert recorded(line.lake.store("silver.trips")) == First.contract()
