"""The event log: append-only, readable beside a run, never in the way of it."""

from __future__ import annotations

import threading
from pathlib import Path

from lodestream.observe.events import EventLog, events_folder, read_events


def test_what_was_emitted_is_read_back_in_order(tmp_path: Path) -> None:
    log = EventLog(events_folder(tmp_path), "run1")
    log.emit("run.started", tables=["bronze.a"])
    log.emit("batch.published", "bronze.a", rows={"in": 3}, batch=1)
    found = list(read_events(tmp_path))
    assert [event.name for event in found] == ["run.started", "batch.published"]
    assert found[1].fields == {"rows": {"in": 3}, "batch": 1}


def test_a_second_process_reads_while_the_run_writes(tmp_path: Path) -> None:
    log = EventLog(events_folder(tmp_path), "run1")
    log.emit("run.started")
    assert len(list(read_events(tmp_path))) == 1
    log.emit("batch.published", "bronze.a")
    assert len(list(read_events(tmp_path, table="bronze.a"))) == 1


def test_a_line_that_a_crash_cut_off_is_skipped(tmp_path: Path) -> None:
    log = EventLog(events_folder(tmp_path), "run1")
    log.emit("run.started")
    log.close()
    with (events_folder(tmp_path) / "run1.jsonl").open("a") as file:
        file.write('{"time": 1, "run": "run1", "eve')
    assert [event.name for event in read_events(tmp_path)] == ["run.started"]


def test_runs_are_read_oldest_first_and_can_be_told_apart(tmp_path: Path) -> None:
    for run in ("20260102T000000_b", "20260101T000000_a"):
        EventLog(events_folder(tmp_path), run).emit("run.started")
    assert [event.run[-1] for event in read_events(tmp_path)] == ["a", "b"]
    assert [event.run[-1] for event in read_events(tmp_path, run="20260102T000000_b")] == ["b"]


def test_a_log_that_cannot_be_written_does_not_stop_the_run(tmp_path: Path) -> None:
    blocked = tmp_path / "events"
    blocked.write_text("a file where the folder should be")
    heard: list[str] = []
    log = EventLog(blocked, "run1", lambda event: heard.append(event.name))
    log.emit("run.started")
    assert heard == ["run.started"]


def test_threads_do_not_tear_each_others_lines(tmp_path: Path) -> None:
    log = EventLog(events_folder(tmp_path), "run1")

    def write(table: str) -> None:
        for number in range(200):
            log.emit("batch.published", table, batch=number, filler="x" * 500)

    threads = [threading.Thread(target=write, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(read_events(tmp_path))) == 800


def test_taken_events_are_handed_out_once(tmp_path: Path) -> None:
    log = EventLog(events_folder(tmp_path), "run1")
    log.emit("run.started")
    assert [event.name for event in log.take()] == ["run.started"]
    assert log.take() == []
