"""`lode status` says what a reader would find: rows, the flow that lives, the lag and age of the stream, and why."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from rich.console import Console

from lodestream.cli.commands.status import status_table
from lodestream.config import load_config
from lodestream.engine.attendant import Attendant, Duty
from lodestream.engine.control import ControlDesk
from lodestream.engine.driver import Driver
from lodestream.engine.failures import Backoff
from lodestream.engine.flow_control import FlowDesk, list_flows
from lodestream.engine.lag import table_pending
from lodestream.engine.runner import Runner
from lodestream.engine.sizing import Sizer
from lodestream.engine.status import TableStatus, read_status
from lodestream.errors import ConfigError
from lodestream.observe import BatchPublished, EventLog, FlowEnded, RunEnded, events_folder, last_events
from lodestream.observe.log import FEW
from lodestream.pipeline import Table
from lodestream.planning.project import open_project
from lodestream.runtime.java_process import how_it_ended
from lodestream.sources.files.listing import Folder
from lodestream.sources.files.position import advance, begin
from lodestream.sources.files.store import file_store
from lodestream.tables.history import History
from lodestream.tables.snapshot import Snapshot, live_rows
from some_events import blocked, published, refused, retry, started, stopped

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

    def publish(
        self,
        name: str,
        rows: int,
        run: str = "r1",
        *,
        asof: float | None = None,
        source: dict[str, Any] | None = None,
        **positions: int,
    ) -> int:
        inputs = {one.replace("__", "."): {"uuid": "u", "snapshot": snapshot} for one, snapshot in positions.items()}
        inputs |= source or {}
        notes = {"lode.asof": str(asof)} if asof is not None else {}
        stamp = {"lode.flow": name, "lode.run": run, "lode.batch": "1", "lode.positions": json.dumps(inputs), **notes}
        table = self.tables[name]
        table.append(pa.table({"value": [str(n) for n in range(rows)]}), stamp)
        return int(table.current_snapshot().snapshot_id)

    def put(self, name: str, rows: int, *, age: float = 0.0) -> None:
        """A file of events."""
        path = self.folder / "data" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"value": "a"}\n' * rows)
        os.utime(path, (time.time() - age,) * 2)

    def read_all(self, **facts: Any) -> int:
        """Bronze takes every file that is there."""
        source = Folder(file_store(str(self.folder / "data"), {}), "*")
        files = source.versions() or []
        root = file_store(str(self.folder / "data"), {}).root
        return self.publish("bronze.raw", 2, source={"files": advance(begin(root), files)}, **facts)

    def log(self, run: str, *, pid: int | None = None) -> EventLog:
        log = EventLog(events_folder(self.config.state_dir), run)
        log.emit(started(*TABLES, pid=pid or os.getpid()))
        return log

    def status(self) -> dict[str, TableStatus]:
        return {one.name: one for one in read_status(open_project(self.config)).tables}


@pytest.fixture
def taxi(tmp_path: Path) -> Taxi:
    return Taxi(tmp_path / "taxi")


def test_rows_that_were_deleted_are_not_counted() -> None:
    summary = {"total-records": "790", "total-position-deletes": "575"}
    assert Snapshot(1, None, "overwrite", 0, summary).live_rows == 215


@contextmanager
def answering(taxi: Taxi, run: str) -> Iterator[dict[str, Runner]]:
    """The runners of a run that answers; each is as a driver has left it."""
    events = taxi.log(run)
    graph = open_project(taxi.config).graph

    class Quiet:
        def __init__(self, table: Table) -> None:
            self.table, self.name = table, table.name

        def step(self, rows: int) -> None:
            return None

        def take_notices(self) -> list[Any]:
            return []

    def runner(table: Table) -> Runner:
        return Runner(
            Quiet(table),  # type: ignore[arg-type]
            depth=0, polled=1.0, sizer=Sizer(1.0, 10), backoff=Backoff(0.1, 1), events=events,
        )  # fmt: skip

    runners = [runner(table) for table in graph]
    for one in runners:
        one.due = time.monotonic() + 60  # a moment ago it looked and found nothing
    driver = Driver(runners, {}, workers=1, once=False, stop=threading.Event())
    desk = ControlDesk(taxi.config.state_dir, run, TABLES, FlowDesk(run, runners, driver).answer)
    desk.open()
    attendant = Attendant(Duty("control", 0.02, desk.attend))
    attendant.start()
    try:
        yield {runner.name: runner for runner in runners}
    finally:
        attendant.close()
        desk.close()


def test_files_that_nobody_has_read_are_lag_when_no_run_lives(taxi: Taxi) -> None:
    taxi.put("old.json", 2, age=600)
    taxi.publish("silver.trips", 2, bronze__raw=taxi.read_all(asof=time.time() - 590))
    before = taxi.status()
    assert [(before[name].lag_events, before[name].lag_seconds) for name in TABLES[::2]] == [(0, 0), (0, 0)]
    taxi.put("new.json", 5, age=7)
    after = taxi.status()
    for name in ("bronze.raw", "silver.trips"):
        assert (after[name].state, after[name].lag_events) == ("idle", 5)
        assert 7 <= (after[name].lag_seconds or 0) < 60, "as old as the file, not as the last batch"
    taxi.put("late.json", 1, age=900)
    assert taxi.status()["bronze.raw"].lag_events is None, "only the rows of Bronze tell which files were read"


def test_a_source_that_cannot_be_asked_has_no_lag_of_nothing(taxi: Taxi) -> None:
    taxi.publish("bronze.raw", 2)
    assert taxi.status()["bronze.raw"].lag_events is None
    taxi.log("r1")
    assert taxi.status()["bronze.raw"].lag_events == 0, "its flow looks at it"


def raising(*_: Any) -> Any:
    raise RuntimeError("a source of the user's own")


@pytest.mark.parametrize("backlog", [raising, lambda _declared, _config: raising])
def test_a_source_that_raises_when_it_is_asked_keeps_no_table_from_view(
    taxi: Taxi, monkeypatch: pytest.MonkeyPatch, backlog: Any
) -> None:
    taxi.publish("bronze.raw", 2)
    kind = SimpleNamespace(backlog=backlog)
    monkeypatch.setattr("lodestream.engine.status.kind_of", lambda _declared: kind)
    found = taxi.status()
    assert (found["bronze.raw"].rows, found["bronze.raw"].lag_events) == (2, None)
    assert set(found) == set(TABLES)


def test_a_reference_file_that_was_edited_is_lag(taxi: Taxi) -> None:
    held = hashlib.sha256((taxi.folder / "zones.csv").read_bytes()).hexdigest()
    taxi.publish("silver.zones", 1, source={"file": {"file": "zones.csv", "sha256": held}})
    assert taxi.status()["silver.zones"].lag_events == 0
    (taxi.folder / "zones.csv").write_text("value\nb\n")
    assert taxi.status()["silver.zones"].lag_events == 1


def test_status_and_flow_list_say_the_same_of_every_flow(taxi: Taxi) -> None:
    with answering(taxi, "r1") as runners:
        raw = taxi.publish("bronze.raw", 2)
        taxi.publish("silver.trips", 2, "a_replay", bronze__raw=raw)
        runners["silver.trips"].state = "running"
        runners["gold.daily"].pause()
        listed = {one.table: one.state for one in list_flows(open_project(taxi.config))}
        assert {name: one.state for name, one in taxi.status().items()} == listed
        assert listed == dict(zip(TABLES, ("waiting", "waiting", "running", "paused"), strict=True))


def test_a_flow_whose_turn_does_not_come_is_queued_not_up_to_date(taxi: Taxi) -> None:
    with answering(taxi, "r1") as runners:
        taxi.publish("bronze.raw", 2)
        runners["silver.trips"].due = time.monotonic() - 5
        runners["silver.zones"].due = 0.0  # it has never had a turn
        runners["gold.daily"].wake()  # a moment ago
        runners["gold.daily"].due = time.monotonic() + 60
        found = taxi.status()
        states = [found[name].state for name in ("silver.trips", "silver.zones", "gold.daily")]
        assert states == ["queued", "queued", "waiting"]


def test_a_retry_that_found_nothing_new_is_over(taxi: Taxi) -> None:
    with answering(taxi, "r1") as runners:
        runners["bronze.raw"]._say(retry("bronze.raw", "the disk is away"))
        runners["bronze.raw"].turn()
        assert taxi.status()["bronze.raw"].state == "waiting"


def test_a_quiet_table_is_as_fresh_as_the_last_look_at_its_source(taxi: Taxi) -> None:
    taxi.put("old.json", 2, age=600)
    taxi.publish("silver.trips", 2, bronze__raw=taxi.read_all(asof=time.time() - 590))
    with answering(taxi, "r1") as runners:
        assert [taxi.status()[name].freshness_s for name in ("bronze.raw", "silver.trips")] == [0, 0]
        for runner in runners.values():
            runner.turn()
        taxi.read_all(asof=time.time() - 3)
        trips = taxi.status()["silver.trips"]
        assert trips.lag_events == 2
        assert 3 <= (trips.lag_seconds or 0) < 60, "the event that waits is new, however long it was quiet before"
        assert 3 <= (trips.freshness_s or 0) < 60


def test_what_waits_at_a_broker_came_after_the_last_look(taxi: Taxi, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (taxi.folder / "pipeline.py").read_text()
    text = text.replace("import Files,", "import Kafka,").replace('Files("data", format="json")', 'Kafka("raw")')
    (taxi.folder / "pipeline.py").write_text(text)
    monkeypatch.setattr("lodestream.sources.kafka.lag.topic_ends", lambda *_: {"raw": ("id", {0: 3})})
    read = {"kafka": {"raw": {"id": "id", "offsets": {"0": 2}}}}
    taxi.publish("bronze.raw", 2, asof=time.time() - 139, source=read)
    assert (taxi.status()["bronze.raw"].lag_seconds or 0) >= 139, "without a run it came at any time since"
    with answering(taxi, "r1") as runners:
        runners["bronze.raw"].turn()
        found = taxi.status()["bronze.raw"]
        assert found.lag_events == 1
        assert (found.lag_seconds or 0) < 60


def test_tables_of_a_run_whose_java_was_killed_are_all_in_one_state(taxi: Taxi) -> None:
    log = taxi.log("r1")
    taxi.publish("bronze.raw", 1)
    lost = how_it_ended(-9)
    time.sleep(0.01)
    log.emit(stopped("silver.trips", lost.what, error="JavaEnded", why=lost.why, fix=lost.fix))
    log.emit(RunEnded(reason=lost.what, exit_code=70))
    assert {(one.state, one.error) for one in taxi.status().values()} == {("idle", lost.what)}


def commits(*summaries: dict[str, int | str]) -> list[Snapshot]:
    """A history, newest first, of commits told oldest first."""
    made = []
    for number, told in enumerate(summaries, start=1):
        summary = {key.replace("_", "-"): str(value) for key, value in told.items()}
        made.append(Snapshot(number, number - 1 or None, summary.pop("operation", "overwrite"), 0, summary))
    return made[::-1]


LOADED = {"operation": "append", "added_records": 100, "total_records": 100}
CHANGED = {"added_records": 10, "added_position_deletes": 12, "total_records": 110, "total_position_deletes": 12}
COMPACTED = {
    "operation": "replace", "added_records": 40, "deleted_records": 50, "total_records": 100,
    "total_position_deletes": 12,
}  # fmt: skip
LATER = {"added_records": 5, "added_position_deletes": 1, "total_records": 105, "total_position_deletes": 13}


def test_a_compaction_that_leaves_delete_files_changes_no_count() -> None:
    history = commits(LOADED, CHANGED, COMPACTED, LATER)
    assert [live_rows(history[place:]) for place in range(4)] == [102, 98, 98, 100]
    whole = {**COMPACTED, "added_records": 98, "total_records": 98}
    assert live_rows(commits(whole)) == 98, "every file is new, so no delete is about one"
    merged = {"operation": "replace", "total_records": 100, "added_position_deletes": 9, "total_position_deletes": 9}
    assert live_rows(commits(LOADED, CHANGED, COMPACTED, merged)) == 98


def test_a_history_that_was_cut_off_is_counted_by_what_was_noted_and_never_guessed() -> None:
    cut = commits(LOADED, CHANGED, COMPACTED, LATER)[:1]
    assert live_rows(cut) is None
    assert live_rows(commits({**LATER, "lode.held": 98})) == 102
    rewritten = {"deleted_records": 20, "added_records": 9, "total_records": 89, "total_position_deletes": 12}
    assert live_rows(commits(LOADED, CHANGED, rewritten)) is None, "some of the rows that went had gone before"
    assert live_rows(commits(LOADED, {**CHANGED, "total_equality_deletes": 1})) is None


class Cut(History):
    """A table of which only the newest commits are left."""

    def __init__(self, snapshots: list[Snapshot], kept: int) -> None:
        self.name = "silver.trips"
        self._left = {one.id: one for one in snapshots[:kept]}

    @property
    def uuid(self) -> str:
        return "u"

    def head(self) -> Snapshot | None:
        return next(iter(self._left.values()))

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        return self._left.get(snapshot_id)


def test_the_lag_behind_a_table_whose_history_was_cut_off_is_what_a_reader_will_read() -> None:
    added = [{"operation": "append", "added_records": 10, "total_records": 10 * number} for number in (1, 2, 3, 4)]
    history = commits(*added)
    assert [table_pending(Cut(history, 4), {"snapshot": place}) for place in (4, 3, 1)] == [0, 10, 30]
    assert table_pending(Cut(history, 4), None) == table_pending(Cut(history, 2), None) == 40
    assert table_pending(Cut(history, 2), {"snapshot": 2}) == 20, "its place has expired, what came after it is there"
    assert table_pending(Cut(history, 2), {"snapshot": 1}) == 40


def test_a_run_that_came_later_and_lost_says_nothing_of_the_flows(taxi: Taxi) -> None:
    first = taxi.log("20240101T000000_a")
    taxi.publish("bronze.raw", 3, "20240101T000000_a")
    loser = taxi.log("20240102T000000_b")
    loser.emit(refused("bronze.raw", "another run keeps it"))
    alive = taxi.status()
    assert (alive["bronze.raw"].state, alive["bronze.raw"].error) == ("waiting", None)
    assert alive["silver.trips"].state == "waiting"
    loser.emit(FlowEnded("silver.trips", reason="asked to stop", batches=0, rows=0))
    loser.emit(RunEnded(reason="1 of 4 flows stopped on an error", exit_code=5))
    loser.close()
    after = read_status(open_project(taxi.config))
    assert [one.state for one in after.tables if one.name == "bronze.raw"] == ["waiting"]
    assert after.run is not None
    assert (after.run.run, after.run.alive) == ("20240101T000000_a", True)
    first.emit(RunEnded(reason="asked to stop", exit_code=0))
    assert taxi.status()["bronze.raw"].state == "idle"


def test_each_of_two_drivers_speaks_for_its_own_tables(taxi: Taxi) -> None:
    for run, tables in (("a", ["bronze.raw"]), ("b", ["silver.trips", "gold.daily"])):
        log = EventLog(events_folder(taxi.config.state_dir), run)
        log.emit(started(*tables, pid=os.getpid()))
        log.emit(retry(tables[0], f"trouble of {run}"))
    found = taxi.status()
    assert (found["bronze.raw"].state, found["bronze.raw"].error) == ("retrying", "trouble of a")
    assert (found["silver.trips"].state, found["silver.trips"].error) == ("retrying", "trouble of b")
    assert found["gold.daily"].state == "waiting"
    assert found["silver.zones"].state == "idle"


def test_a_batch_that_was_published_after_a_retry_ends_it(taxi: Taxi) -> None:
    log = taxi.log("r1")
    log.emit(retry("bronze.raw", "the disk is away"))
    assert taxi.status()["bronze.raw"].state == "retrying"
    time.sleep(0.01)
    taxi.publish("bronze.raw", 1)
    assert taxi.status()["bronze.raw"].state == "waiting"


def test_gold_with_a_lookup_is_as_fresh_as_its_stream(taxi: Taxi) -> None:
    now = time.time()
    taxi.log("r1")
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
    log.emit(published("bronze.raw"))
    time.sleep(0.01)
    log.emit(stopped("silver.zones", "silver.zones: zones.csv cannot be read"))
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
    taxi.log("r1")
    raw = taxi.publish("bronze.raw", 2)
    trips = taxi.publish("silver.trips", 2, bronze__raw=raw)
    taxi.publish("gold.daily", 1, silver__trips=trips)
    assert taxi.status()["gold.daily"].lag_events == 0
    taxi.tables["silver.trips"].delete("value = '0'")
    assert taxi.status()["gold.daily"].lag_events


def test_the_reason_names_what_is_wrong_where(taxi: Taxi) -> None:
    why, told = "line 7: rate is 'x'\nline 9: ...", "zones.csv does not hold: line 7: rate is 'x'"
    log = taxi.log("r1")
    log.emit(stopped("silver.zones", "zones.csv does not hold", why=why))
    log.close()
    assert taxi.status()["silver.zones"].error == told
    with answering(taxi, "r2") as runners:
        runners["silver.zones"].error = ConfigError("zones.csv does not hold", why=why)
        assert taxi.status()["silver.zones"].error == told


def test_the_state_comes_from_the_end_of_the_log(taxi: Taxi) -> None:
    log = taxi.log("r1")
    log.emit(stopped("silver.zones", "the file is broken"))
    for number in range(1_000):
        log.emit(published("bronze.raw", number, positions={"filler": "x" * 1_000}))
    log.close()
    path = events_folder(taxi.config.state_dir) / "r1.jsonl"
    assert [event.name for event in last_events(taxi.config.state_dir, "r1")] == ["run.started", "flow.stopped"]
    found = taxi.status()["silver.zones"]
    assert (found.state, found.error) == ("stopped", "the file is broken")
    path.with_suffix(FEW).unlink()  # a log of an earlier version
    end = last_events(taxi.config.state_dir, "r1")
    assert 100 < len(end) < 300, "a part of it, whole lines only"
    last = end[-1]
    assert isinstance(last, BatchPublished)
    assert last.batch == 999


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
    log.emit(blocked("silver.zones", "silver.zones: zones.csv cannot be read"))
    found = read_status(open_project(taxi.config))
    zones = next(one for one in found.tables if one.name == "silver.zones")
    assert (zones.state, zones.lag_events, zones.lag_seconds) == ("blocked", None, None)
    states = next(column for column in status_table(found).columns if column.header == "state")
    assert {str(cell): cell.style for cell in states.cells}["blocked"] == "bold red"  # type: ignore[union-attr]
