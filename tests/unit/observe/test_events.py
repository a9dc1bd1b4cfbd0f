"""The event log: append-only, readable beside a run, never in the way of it."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from lodestream.observe import BatchPublished, Event, EventLog, OtherEvent, events_folder, read_events
from some_events import published, started


def test_what_was_emitted_is_read_back_in_order_as_its_type(tmp_path: Path) -> None:
    log = EventLog(events_folder(tmp_path), "run1")
    said: list[Event] = [log.emit(started("bronze.a")), log.emit(published("bronze.a", rows={"in": 3}))]
    assert list(read_events(tmp_path)) == said
    (batch,) = read_events(tmp_path, BatchPublished)
    assert (batch.table, batch.run, batch.rows["in"]) == ("bronze.a", "run1", 3)


def test_a_second_process_reads_while_the_run_writes(tmp_path: Path) -> None:
    log = EventLog(events_folder(tmp_path), "run1")
    log.emit(started())
    assert len(list(read_events(tmp_path))) == 1
    log.emit(published("bronze.a"))
    assert len(list(read_events(tmp_path, table="bronze.a"))) == 1


def test_a_line_that_a_crash_cut_off_is_skipped(tmp_path: Path) -> None:
    log = EventLog(events_folder(tmp_path), "run1")
    log.emit(started())
    log.close()
    with (events_folder(tmp_path) / "run1.jsonl").open("a") as file:
        file.write('7\n{"time": 1, "run": "run1", "eve')
    assert [event.name for event in read_events(tmp_path)] == ["run.started"]


def test_events_of_another_version_are_kept_as_they_are(tmp_path: Path) -> None:
    lines = [
        '{"time": 1.5, "run": "r", "event": "table.compacted", "table": "gold.a", "files": 7}',
        '{"time": 2.5, "run": "r", "event": "flow.resumed", "table": "gold.a", "reason": "x", "since": [1]}',
        '{"time": 3.5, "run": "r", "event": "flow.resumed", "table": "gold.a"}',
        '{"time": 4.5, "run": "r", "event": "flow.ended", "table": "a", "reason": "x", "batches": "many", "rows": 1}',
    ]
    events_folder(tmp_path).mkdir()
    (events_folder(tmp_path) / "r.jsonl").write_text("\n".join(lines))
    found = list(read_events(tmp_path))
    assert [type(one).__name__ for one in found] == ["OtherEvent", "FlowResumed", "OtherEvent", "OtherEvent"]
    assert isinstance(found[0], OtherEvent)
    assert found[0].line() == "table.compacted flow=gold.a files=7"
    assert [one.name for one in found[1:]] == ["flow.resumed", "flow.resumed", "flow.ended"]
    assert [one.to_json() for one in found] == [json.loads(line) for line in lines]


def test_runs_are_read_oldest_first_and_can_be_told_apart(tmp_path: Path) -> None:
    for run in ("20260102T000000_b", "20260101T000000_a"):
        EventLog(events_folder(tmp_path), run).emit(started())
    assert [event.run[-1] for event in read_events(tmp_path)] == ["a", "b"]
    assert [event.run[-1] for event in read_events(tmp_path, run="20260102T000000_b")] == ["b"]


def test_a_log_that_cannot_be_written_does_not_stop_the_run(tmp_path: Path) -> None:
    blocked = tmp_path / "events"
    blocked.write_text("a file where the folder should be")
    heard: list[str] = []
    log = EventLog(blocked, "run1", lambda event: heard.append(event.name))
    log.emit(started())
    assert heard == ["run.started"]


def test_threads_do_not_tear_each_others_lines(tmp_path: Path) -> None:
    log = EventLog(events_folder(tmp_path), "run1")

    def write(table: str) -> None:
        for number in range(200):
            log.emit(published(table, number, positions={"filler": "x" * 500}))

    threads = [threading.Thread(target=write, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(read_events(tmp_path))) == 800
