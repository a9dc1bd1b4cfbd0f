"""The taxi example with its dirt on, in each format: `silver.trips` is what a batch recompute says, row by row."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lodestream.config import Config, load_config
from lodestream.engine import RunEnd, run_pipeline
from lodestream.errors import RegistryUnavailable
from lodestream.observe import BatchPublished, Event
from lodestream.planning.project import open_project
from lodestream.runtime.session import start_session
from lodestream.tables.hidden import shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lodestream.runtime.broker import BrokerInfo

EXAMPLE = Path(__file__).parents[3] / "examples" / "nyc_taxi"
sys.path[:0] = [str(EXAMPLE), str(Path(__file__).parents[2])]
pytest.register_assert_rewrite("taxi_oracle")

from generator import Batch, Counts, Dirt, encoder, ensure_topic, events, expected, open_sender  # noqa: E402
from generator.wire import open_serialiser  # noqa: E402

from taxi_oracle import TaxiOracle, rows_by_id  # noqa: E402

N, HALF, SEED = 6_000, 3_500, 11
DIRT = Dirt(duplicates=0.02, late=0.02, out_of_order=0.05, malformed=0.01)
ALL = Dirt(duplicates=0.02, late=0.02, out_of_order=0.05, malformed=0.01, corrections=0.05, deletes=0.02)
TABLES = ("bronze.trips_raw", "silver.trips", "silver.trip_metrics")
SETTINGS = """
pipeline = "pipeline.py"
profile = "local"

[profiles.local.kafka]
bootstrap = "{bootstrap}"

[profiles.local.engine]
retry_for = "2 s"
"""
TRIP = {
    "VendorID": 2, "tpep_pickup_datetime": "2024-01-09T08:00:00", "tpep_dropoff_datetime": "2024-01-09T08:10:59",
    "passenger_count": 1, "trip_distance": 2.5, "RatecodeID": 1, "store_and_fwd_flag": "N", "PULocationID": 132,
    "DOLocationID": 7, "payment_type": 1, "fare_amount": 12.5, "extra": 0.0, "mta_tax": 0.5, "tip_amount": 0.0,
    "tolls_amount": 0.0, "improvement_surcharge": 1.0, "total_amount": 14.0, "congestion_surcharge": 2.5,
    "Airport_fee": 0.0,
}  # fmt: skip
# Beside what the generator makes: cents at the half, amounts that fit or do not, and what the contract asks for.
EDGES = (
    {"fare_amount": 2.675, "tip_amount": 1.005, "total_amount": 0.125},
    # With an id of their own: the trip's hash takes amounts as text, and engines write such numbers differently.
    {"fare_amount": 8.344999, "extra": 0.005, "tip_amount": -0.005, "total_amount": 1e-7, "trip_uid": "tiny"},
    {"fare_amount": -0.004, "total_amount": 99999999.99, "trip_uid": "huge"},
    {"fare_amount": -0.005},
    {"total_amount": 99999999.995},
    {"fare_amount": None},
    {"trip_distance": None},
    {"trip_distance": -0.01},
    {"tpep_pickup_datetime": None},
    {"tpep_dropoff_datetime": None},
    {"tpep_pickup_datetime": "2024-02-01T00:00:00"},
    {"tpep_pickup_datetime": "2023-12-31T23:59:59.999999"},
    {"tpep_pickup_datetime": "2024-01-31T23:59:59.999999", "tpep_dropoff_datetime": "2024-02-01T00:05:00"},
    {"PULocationID": None, "DOLocationID": None, "VendorID": None},
)


@dataclass
class Taxi:
    """The example in a folder of its own, on a topic of its own."""

    root: Path
    topic: str
    bootstrap: str
    spark: SparkSession
    said: list[Event]

    @property
    def config(self) -> Config:
        return load_config(self.root)

    def send(self, values: list[bytes | None]) -> None:
        sender = open_sender(self.bootstrap, self.topic)
        array = pa.array(values, pa.binary())
        sender.send(Batch(0, pa.nulls(len(array), pa.binary()), array, None, Counts()))  # type: ignore[arg-type]
        sender.close()

    def run(self) -> RunEnd:
        project = open_project(self.config)
        return run_pipeline(project, once=True, only=TABLES, spark=self.spark, listeners=[self.said.append])

    def frame(self, table: str) -> DataFrame:
        return self.spark.table(f"lode.{table}")

    def rows(self, table: str, name: str) -> int:
        published = [one for one in self.said if isinstance(one, BatchPublished) and one.table == table]
        return sum(one.rows.get(name, 0) for one in published)


@pytest.fixture
def taxi(
    tmp_path: Path, broker: BrokerInfo, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], Taxi]:
    def make(form: str, registry: str) -> Taxi:
        root, topic = tmp_path / form, f"taxi.{tmp_path.name}.{form}"
        shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns(".lode", "generator", "__pycache__"))
        declared = (root / "pipeline.py").read_text()
        assert 'Kafka("taxi.trips")' in declared
        (root / "pipeline.py").write_text(declared.replace('Kafka("taxi.trips")', f'Kafka("{topic}")'))
        (root / "lode.toml").write_text(SETTINGS.format(bootstrap=broker.bootstrap))
        monkeypatch.setenv("TAXI_FORMAT", form)
        monkeypatch.setenv("TAXI_REGISTRY", registry)
        ensure_topic(broker.bootstrap, topic, 1)
        return Taxi(root, topic, broker.bootstrap, start_session(load_config(root), app_name="tests"), [])

    return make


def json_values(dirt: Dirt) -> list[bytes]:
    made = [value for batch in events(N, SEED, dirt) for value in batch.values.to_pylist()]
    return made + [json.dumps({**TRIP, **edge}).encode() for edge in EDGES]


def wire_values(form: str, registry: str, topic: str, dirt: Dirt = DIRT) -> list[bytes]:
    """The same events in another format: the edges are written by what registered the others."""
    if form == "json":
        return json_values(dirt)
    encode = encoder(form, registry, topic)  # type: ignore[arg-type]
    made = [value for batch in events(N, SEED, dirt, encode=encode) for value in batch.values.to_pylist()]
    return made + open_serialiser(form, registry, f"{topic}-value").serialise({**TRIP, **edge} for edge in EDGES)  # type: ignore[arg-type]


def assert_same(actual: pa.Table, expected: pa.Table) -> None:
    """Types first, then row by row."""
    text = {field.name: pa.string() for field in actual.schema if pa.types.is_large_string(field.type)}
    plain = pa.schema([pa.field(f.name, text.get(f.name, f.type)) for f in actual.schema])
    assert plain == pa.schema([pa.field(f.name, f.type) for f in expected.schema])
    found, wanted = rows_by_id(actual), rows_by_id(expected)
    assert len(found) == len(actual), "a trip id came twice"
    assert found.keys() == wanted.keys()
    assert [(found[one], wanted[one]) for one in found if found[one] != wanted[one]] == []


@pytest.mark.parametrize(
    ("form", "dirt"), [("json", DIRT), ("json", ALL), ("avro", ALL), ("protobuf", ALL)],
    ids=["json", "json-corrected", "avro-corrected", "protobuf-corrected"],
)  # fmt: skip
def test_silver_trips_equal_the_recompute_and_every_event_has_one_place(
    form: str, dirt: Dirt, taxi: Callable[[str, str], Taxi], registry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAXI_CORRECTIONS", "1" if dirt.keyed else "")
    oracle, project = TaxiOracle.of(json_values(dirt)), taxi(form, registry.url)
    values = wire_values(form, registry.url, project.topic, dirt)
    for part in (values[:HALF], values[HALF:]):  # so that a duplicate's first may be in an earlier batch
        project.send(part)
        assert project.run().exit_code == 0
    for name in ("trips", "trip_metrics"):
        kept = shown(project.frame(f"silver.{name}"))
        assert_same(kept.toArrow(), oracle.table(name, ", ".join(kept.columns)))
    dead = project.frame("silver.trips__dead").select("offset", "value", "reasons").collect()
    assert {row.offset for row in dead} == oracle.dead()
    assert len(dead) == len(oracle.dead()), "a dead letter came twice"
    assert all(bytes(row.value) == values[row.offset] and row.reasons for row in dead)
    assert_accounted(project, oracle, len(values), keyed=dirt.keyed)
    unreadable = sum(row.reasons[0].startswith(f"{form}: ") for row in dead)
    # A time that is no time is text in the event, so it is the contract that refuses it.
    assert unreadable <= expected(N, SEED, dirt).malformed <= unreadable + sum("datetime" in r.reasons[0] for r in dead)


def assert_accounted(project: Taxi, oracle: TaxiOracle, sent: int, *, keyed: bool) -> None:
    """Every event is counted once. A keyed table's `out` is changes of rows, so there all that took part are `kept`."""
    names = ("in", "out", "kept", "dead", "filtered", "duplicates")
    rows = {name: project.rows("silver.trips", name) for name in names}
    good = oracle.count("verdict = 'good'")
    assert rows["in"] == sent == rows["kept"] + rows["dead"] + rows["filtered"]
    assert (rows["kept"], rows["dead"]) == (good, len(oracle.dead()))
    if not keyed:
        assert rows["out"] + rows["duplicates"] == good
        assert rows["out"] == len(oracle.table("trips"))


def test_a_silent_registry_is_waited_for_then_stops_the_flow_and_blames_no_event(
    taxi: Callable[[str, str], Taxi], registry: Any, line: Any
) -> None:
    project = taxi("avro", line.url)
    values = wire_values("avro", registry.url, project.topic)[:50]
    project.send(values)
    line.cut()
    ended = project.run().flows["silver.trips"]
    assert isinstance(ended.error, RegistryUnavailable)
    assert ended.error.exit_code == 75
    assert any(e.name == "flow.retry" and e.table == "silver.trips" for e in project.said), (
        "tried again before it stopped"
    )
    assert not project.spark.catalog.tableExists("lode.silver.trips__dead")
    line.mend()
    assert project.run().exit_code == 0
    assert project.rows("silver.trips", "in") == 50
    assert project.frame("silver.trips").count() == project.rows("silver.trips", "out") > 40
