"""`lode status` says what a reader would find: rows, the flow that lives, the lag and age of the stream, and why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from rich.console import Console

from lodestream.cli.commands.status import status_table
from lodestream.config import load_config
from lodestream.engine.project import open_project
from lodestream.engine.status import TableStatus, read_status
from lodestream.observe.events import FEW, EventLog, events_folder, last_events
from lodestream.tables.snapshot import Snapshot

PIPELINE = """
from lodestream import Files, Pipeline

taxi = Pipeline("taxi")
taxi.bronze("raw", Files("data", format="json"))
taxi.reference("zones", "zones.csv")
taxi.silver("trips", sql="SELECT value FROM bronze.raw")
taxi.gold("daily", sql="SELECT t.value, count(*) AS n FROM silver.trips t JOIN silver.zones z USING (value) GROUP BY 1")
"""
TABLES = ("bronze.raw", "silver.zones", "silver.trips", "gold.daily")


class Taxi:
    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "lode.toml").touch()
        (folder / "pipeline.py").write_text(PIPELINE)
        (folder / "zones.csv").write_text("value\na\n")
        self.folder = folder
        self.config = load_config(folder)
        self.config.state_dir.mkdir()
        place = {"uri": self.config.catalog_uri().removeprefix("jdbc:"), "warehouse": self.config.warehouse()}
        self.catalog = load_catalog(self.config.catalog.name, type="sql", **place)
        for space in ("bronze", "silver", "gold"):
            self.catalog.create_namespace(space)
        self.tables = {name: self.catalog.create_table(name, pa.schema([("value", pa.string())])) for name in TABLES}

    def publish(self, name: str, rows: int, run: str = "r1", *, asof: float | None = None, **positions: int) -> int:
        inputs = {one.replace("__", "."): {"uuid": "u", "snapshot": snapshot} for one, snapshot in positions.items()}
        notes = {"lode.asof": str(asof)} if asof is not None else {}
        stamp = {"lode.flow": name, "lode.run": run, "lode.batch": "1", "lode.positions": json.dumps(inputs), **notes}
        table = self.tables[name]
        table.append(pa.table({"value": [str(n) for n in range(rows)]}), stamp)
        return int(table.current_snapshot().snapshot_id)

    def log(self, run: str, *, pid: int | None = None) -> EventLog:
        log = EventLog(events_folder(self.config.state_dir), run)
        log.emit("run.started", pipeline="taxi", tables=list(TABLES), once=False, pid=pid or os.getpid())
        return log

    def status(self) -> dict[str, TableStatus]:
        return {one.name: one for one in read_status(open_project(self.config)).tables}


@pytest.fixture
def taxi(tmp_path: Path) -> Taxi:
    return Taxi(tmp_path / "taxi")


def test_rows_that_were_deleted_are_not_counted() -> None:
    summary = {"total-records": "790", "total-position-deletes": "575"}
    assert Snapshot(1, None, "overwrite", 0, summary).live_rows == 215


def test_a_run_that_came_later_and_lost_says_nothing_of_the_flows(taxi: Taxi) -> None:
    first = taxi.log("20240101T000000_a")
    taxi.publish("bronze.raw", 3, "20240101T000000_a")
    loser = taxi.log("20240102T000000_b")
    loser.emit("batch.refused", "bronze.raw", error="AnotherWriter", what="another run keeps it")
    alive = taxi.status()
    assert (alive["bronze.raw"].state, alive["bronze.raw"].error) == ("running", None)
    assert alive["silver.trips"].state == "waiting"
    loser.emit("flow.ended", "silver.trips", reason="asked to stop")
    loser.emit("run.ended", reason="1 of 4 flows stopped on an error", exit_code=5)
    loser.close()
    after = read_status(open_project(taxi.config))
    assert [one.state for one in after.tables if one.name == "bronze.raw"] == ["running"]
    assert after.run is not None
    assert (after.run.run, after.run.alive) == ("20240101T000000_a", True)
    first.emit("run.ended", reason="asked to stop", exit_code=0)
    assert taxi.status()["bronze.raw"].state == "idle"


def test_each_of_two_drivers_speaks_for_its_own_tables(taxi: Taxi) -> None:
    for run, tables in (("a", ["bronze.raw"]), ("b", ["silver.trips", "gold.daily"])):
        log = EventLog(events_folder(taxi.config.state_dir), run)
        log.emit("run.started", tables=tables, once=False, pid=os.getpid())
        log.emit("flow.retry", tables[0], what=f"trouble of {run}")
    found = taxi.status()
    assert (found["bronze.raw"].state, found["bronze.raw"].error) == ("retrying", "trouble of a")
    assert (found["silver.trips"].state, found["silver.trips"].error) == ("retrying", "trouble of b")
    assert found["gold.daily"].state == "waiting"
    assert found["silver.zones"].state == "idle"


def test_a_batch_that_was_published_after_a_retry_ends_it(taxi: Taxi) -> None:
    log = taxi.log("r1")
    log.emit("flow.retry", "bronze.raw", what="the disk is away")
    assert taxi.status()["bronze.raw"].state == "retrying"
    time.sleep(0.01)
    taxi.publish("bronze.raw", 1)
    assert taxi.status()["bronze.raw"].state == "running"


def test_gold_with_a_lookup_is_as_fresh_as_its_stream(taxi: Taxi) -> None:
    now = time.time()
    raw = taxi.publish("bronze.raw", 2, asof=now - 5)
    zones = taxi.publish("silver.zones", 1, asof=now - 3_240)
    trips = taxi.publish("silver.trips", 2, asof=now - 3_240, bronze__raw=raw)
    taxi.publish("gold.daily", 1, asof=now - 3_240, silver__trips=trips, silver__zones=zones)
    taxi.publish("silver.trips", 3, asof=now - 3_240, bronze__raw=raw)
    gold = taxi.status()["gold.daily"]
    assert gold.lag_events == 3
    assert 5 <= (gold.freshness_s or 0) < 60
    assert 5 <= (gold.lag_seconds or 0) < 60


def test_a_flow_that_has_stopped_says_why_and_claims_no_lag_of_nothing(taxi: Taxi) -> None:
    log = taxi.log("r1")
    taxi.publish("bronze.raw", 1)
    zones = taxi.publish("silver.zones", 1)
    log.emit("batch.published", "bronze.raw", batch=1)
    time.sleep(0.01)
    log.emit("flow.stopped", "silver.zones", error="SourceUnreadable", what="silver.zones: zones.csv cannot be read")
    found = read_status(open_project(taxi.config))
    told = {one.name: one for one in found.tables}
    assert (told["silver.zones"].state, told["silver.zones"].lag_events) == ("stopped", None)
    assert told["silver.zones"].snapshot == zones
    assert told["bronze.raw"].lag_events == 0
    with (console := Console(width=200, force_terminal=True, color_system=None)).capture() as captured:
        console.print(status_table(found))
    line = next(one for one in captured.get().splitlines() if one.startswith("silver.zones"))
    assert "stopped" in line
    assert "zones.csv cannot be read" in line


def test_an_input_that_is_replaced_in_place_counts_as_news(taxi: Taxi) -> None:
    raw = taxi.publish("bronze.raw", 2)
    trips = taxi.publish("silver.trips", 2, bronze__raw=raw)
    taxi.publish("gold.daily", 1, silver__trips=trips)
    assert taxi.status()["gold.daily"].lag_events == 0
    taxi.tables["silver.trips"].delete("value = '0'")
    assert taxi.status()["gold.daily"].lag_events


def test_the_state_comes_from_the_end_of_the_log(taxi: Taxi) -> None:
    log = taxi.log("r1")
    log.emit("flow.stopped", "silver.zones", what="the file is broken")
    for number in range(1_000):
        log.emit("batch.published", "bronze.raw", batch=number, filler="x" * 1_000)
    log.close()
    path = events_folder(taxi.config.state_dir) / "r1.jsonl"
    assert [event.name for event in last_events(taxi.config.state_dir, "r1")] == ["run.started", "flow.stopped"]
    found = taxi.status()["silver.zones"]
    assert (found.state, found.error) == ("stopped", "the file is broken")
    path.with_suffix(FEW).unlink()  # a log of an earlier version
    end = last_events(taxi.config.state_dir, "r1")
    assert 100 < len(end) < 300, "a part of it, whole lines only"
    assert end[-1].fields["batch"] == 999


def test_a_look_starts_no_java_and_loads_no_client(taxi: Taxi) -> None:
    raw = taxi.publish("bronze.raw", 2)
    taxi.publish("silver.trips", 2, bronze__raw=raw)
    taxi.log("r1").close()
    program = (
        "import sys; from lodestream.cli.main import run_command;"
        f"code = run_command(['--project', {str(taxi.folder)!r}, 'status', '--json']);"
        "heavy = {'pyspark', 'pyiceberg', 'pyarrow', 'confluent_kafka', 'sqlalchemy', 'py4j'} & set(sys.modules);"
        "assert not heavy, heavy; sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {one["name"]: one["rows"] for one in json.loads(done.stdout)["tables"]}["silver.trips"] == 2


def test_a_warehouse_in_a_folder_with_a_difficult_name_is_read(tmp_path: Path) -> None:
    taxi = Taxi(tmp_path / "my täxi #1")
    taxi.publish("bronze.raw", 2)
    assert taxi.status()["bronze.raw"].rows == 2


def test_a_blocked_flow_claims_no_lag_of_nothing_and_stands_out(taxi: Taxi) -> None:
    log = taxi.log("r1")
    taxi.publish("silver.zones", 1)
    time.sleep(0.01)
    log.emit("flow.blocked", "silver.zones", error="SourceUnreadable", what="silver.zones: zones.csv cannot be read")
    found = read_status(open_project(taxi.config))
    zones = next(one for one in found.tables if one.name == "silver.zones")
    assert (zones.state, zones.lag_events, zones.lag_seconds) == ("blocked", None, None)
    states = next(column for column in status_table(found).columns if column.header == "state")
    assert {str(cell): cell.style for cell in states.cells}["blocked"] == "bold red"  # type: ignore[union-attr]
