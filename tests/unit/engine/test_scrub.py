"""Scheduled verification: batches come first, a difference is said and mended once. Driver and flow are scripted."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import test_driver

from lodestream.engine import idle
from lodestream.engine.failures import Backoff
from lodestream.engine.idle import IdleWork
from lodestream.engine.runner import Runner
from lodestream.engine.scrub import Scrubber
from lodestream.engine.sizing import Sizer
from lodestream.engine.upkeep import live_gold
from lodestream.errors import CatalogUnavailable
from lodestream.maintenance import schedule as schedules
from lodestream.maintenance.schedule import Schedule
from lodestream.maintenance.step import Attempt
from lodestream.observe import Event, EventLog
from lodestream.recovery.verify.result import Differences, Sample, Status, Verification

TABLE = "gold.daily"


class ScriptedDriver:
    def __init__(self) -> None:
        self.idle = 10.0
        self.woken: list[str] = []

    def idle_for(self) -> float:
        return self.idle

    def wake(self, names: Iterable[str]) -> None:
        self.woken.extend(names)


class ScriptedFlow:
    rebuilding = False
    rebuilt = 0

    def rebuild_next(self) -> None:
        self.rebuilding = True
        self.rebuilt += 1


class Scrubbed:
    """A scrubber whose verifications are a list of answers."""

    def __init__(self, folder: Path, interval: float = 3600.0) -> None:
        self.driver, self.flow, self.events = ScriptedDriver(), ScriptedFlow(), list[Event]()
        self.log = EventLog(folder / "events", "run", self.events.append)
        self.schedule = Schedule({TABLE: interval}, folder / "verified.json")
        self.asked: list[int | None] = []
        self.cancelled = threading.Event()
        self.answer: Callable[[Callable[[], None]], Verification] = lambda proceed: found("equal")
        self.step = Scrubber(self.schedule, self._verify, lambda name: self.flow, self.driver, self.log)
        self.idle_work = IdleWork([self.step], self.driver, self)

    def begin(self, table: str) -> None:
        assert table == TABLE

    def cancel(self) -> None:
        self.cancelled.set()

    def close(self) -> None:
        self.idle_work.close()
        self.log.close()

    def _verify(self, name: str, keys: int | None, proceed: Callable[[], None]) -> Verification:
        self.asked.append(keys)
        return self.answer(proceed)

    def verify(self) -> list[str]:
        """One attempt; the names of its events."""
        before = len(self.events)
        self.idle_work.attempt(self.step, TABLE)
        return [one.name for one in self.events[before:]]


@pytest.fixture
def scrubbed(tmp_path: Path) -> Iterator[Scrubbed]:
    made = Scrubbed(tmp_path)
    yield made
    made.close()


def found(status: Status, reason: str | None = None, changed: int = 0) -> Verification:
    sample = Sample("changed", {"day": "1", "n": "2"}, {"day": "1", "n": "3"}, ("n",))
    rows = Differences(40, 40, changed=changed, columns={"n": changed} if changed else {}, samples=(sample,) * changed)
    return Verification(TABLE, status, reason, 17, rows, ms=12.5)


def test_an_equal_table_is_one_event_with_its_rows(scrubbed: Scrubbed) -> None:
    assert scrubbed.verify() == ["verify.equal"]
    assert scrubbed.events[0].facts() == {"rows": 40, "ms": 12.5, "snapshot": 17, "sampled": None}
    assert scrubbed.flow.rebuilt == 0


def test_a_difference_is_an_event_an_error_in_the_log_and_a_rebuild(scrubbed: Scrubbed, caplog) -> None:
    scrubbed.answer = lambda proceed: found("different", changed=1)
    with caplog.at_level(logging.ERROR):
        assert scrubbed.verify() == ["verify.mismatch"]
    said = scrubbed.events[0].facts()
    assert (said["added"], said["missing"], said["changed"], said["columns"]) == (0, 0, 1, {"n": 1})
    assert said["samples"][0]["stored"] == {"day": "1", "n": "2"}
    assert said["rebuild"] is True
    assert json.dumps(scrubbed.events[0].to_json())
    assert "verify.mismatch flow=gold.daily" in caplog.text
    assert (scrubbed.flow.rebuilding, scrubbed.driver.woken) == (True, [TABLE])
    assert scrubbed.schedule.due() == [TABLE], "what was rebuilt is verified at once"


def test_a_table_that_differs_right_after_its_rebuild_is_not_rebuilt_again_and_again(scrubbed: Scrubbed) -> None:
    scrubbed.answer = lambda proceed: found("different", changed=1)
    for _ in range(3):
        scrubbed.verify()
    assert [one.facts()["rebuild"] for one in scrubbed.events] == [True, False, False]
    assert scrubbed.flow.rebuilt == 1
    scrubbed.answer = lambda proceed: found("equal")
    scrubbed.verify()
    scrubbed.answer = lambda proceed: found("different", changed=1)
    scrubbed.verify()
    assert scrubbed.flow.rebuilt == 2, "it was mended once, so it can be again"


def test_a_batch_that_begins_ends_the_verification(scrubbed: Scrubbed) -> None:
    def interrupted(proceed: Callable[[], None]) -> Verification:
        scrubbed.driver.idle = 0.0
        assert scrubbed.cancelled.wait(5), "its Spark jobs are cancelled"
        proceed()
        raise AssertionError("proceed ends it")

    scrubbed.answer = interrupted
    assert scrubbed.verify() == []
    assert (scrubbed.flow.rebuilt, scrubbed.schedule.due()) == (0, [])


def test_a_cancelled_job_is_no_finding(scrubbed: Scrubbed) -> None:
    def cancelled(proceed: Callable[[], None]) -> Verification:
        scrubbed.driver.idle = 0.0
        assert scrubbed.cancelled.wait(5)
        return found("cannot be verified", "Job 7 cancelled")

    scrubbed.answer = cancelled
    assert scrubbed.verify() == []


def test_after_three_interruptions_a_sample_is_verified(scrubbed: Scrubbed) -> None:
    def busy(proceed: Callable[[], None]) -> Verification:
        scrubbed.cancelled.clear()
        scrubbed.driver.idle = 0.0
        scrubbed.cancelled.wait(5)
        proceed()
        return found("equal")

    scrubbed.answer = busy
    for _ in range(3):
        scrubbed.verify()
    scrubbed.driver.idle = 10.0
    scrubbed.answer = lambda proceed: found("equal")
    assert scrubbed.verify() == ["verify.equal"]
    scrubbed.verify()
    assert scrubbed.asked == [None, None, None, 1000, None]


def test_what_says_nothing_is_skipped_with_the_reason_and_an_error_is_told(scrubbed: Scrubbed) -> None:
    scrubbed.answer = lambda proceed: found("not comparable", "its answer depends on chance (rand)")
    assert scrubbed.verify() == ["verify.skipped"]
    assert scrubbed.events[0].facts()["reason"] == "its answer depends on chance (rand)"

    def broken(proceed: Callable[[], None]) -> Verification:
        raise ValueError

    scrubbed.answer = broken
    assert scrubbed.verify() == ["verify.failed"]
    assert scrubbed.events[1].facts()["what"] == "ValueError"
    assert scrubbed.flow.rebuilt == 0


def test_nothing_is_verified_while_batches_are_made_or_a_rebuild_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle, "_LOOK", 0.005)
    scrubbed = Scrubbed(tmp_path, interval=0.02)
    scrubbed.driver.idle = idle.QUIET / 2
    scrubbed.idle_work.start()
    time.sleep(0.3)
    assert scrubbed.asked == []
    assert "verify.postponed" in {one.name for one in scrubbed.events}
    scrubbed.flow.rebuilding = True
    scrubbed.driver.idle = idle.QUIET
    time.sleep(0.1)
    assert scrubbed.asked == []
    scrubbed.flow.rebuilding = False
    deadline = time.monotonic() + 5
    while not scrubbed.asked and time.monotonic() < deadline:
        time.sleep(0.01)
    scrubbed.close()
    assert scrubbed.asked


def test_the_schedule_outlives_the_driver(tmp_path: Path) -> None:
    file = tmp_path / "state" / "verified.json"
    assert Schedule({"a": 3600.0, "b": 60.0}, file).due() == [], "the first time is an interval after the first start"
    file.write_text(json.dumps({"a": time.time() - 4000, "b": time.time() - 600}))
    again = Schedule({"a": 3600.0, "b": 60.0}, file)
    assert again.due() == ["b", "a"], "the longest overdue first"
    again.done("b")
    assert Schedule({"a": 3600.0, "b": 60.0}, file).due() == ["a"]
    file.write_text("not json")
    assert Schedule({"a": 3600.0}, file).due() == []


def test_drivers_that_share_the_tables_keep_each_others_entries(tmp_path: Path) -> None:
    file = tmp_path / "verified.json"
    first, second = Schedule({"a": 3600.0}, file), Schedule({"b": 3600.0}, file)
    first.done("a")
    second.done("b")
    first.done("a")
    assert sorted(json.loads(file.read_text())) == ["a", "b"]


def test_drivers_that_write_at_the_same_instant_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "verified.json"
    first, second = Schedule({"a": 3600.0}, file), Schedule({"b": 3600.0}, file)
    file.write_text(json.dumps({"a": 1.0, "b": 1.0}))
    reads, reading, other = schedules._read, threading.Event(), threading.Thread(target=second.done, args=("b",))

    def slow(file: Path) -> dict[str, float]:
        found = reads(file)
        if not reading.is_set():
            reading.set()
            other.start()
            other.join(0.5)  # as far as it comes: nothing may be written between this read and the write after it
        return found

    monkeypatch.setattr(schedules, "_read", slow)
    first.done("a")
    other.join(5)
    assert {name: at > 1.0 for name, at in json.loads(file.read_text()).items()} == {"a": True, "b": True}


def test_a_table_that_is_to_be_rebuilt_is_due_for_the_next_driver_as_well(tmp_path: Path) -> None:
    scrubbed = Scrubbed(tmp_path)
    scrubbed.answer = lambda proceed: found("different", changed=1)
    scrubbed.verify()
    assert Schedule({TABLE: 3600.0}, tmp_path / "verified.json").due() == [TABLE]
    scrubbed.close()


def test_a_rebuild_that_cannot_be_noted_is_asked_for_all_the_same(scrubbed: Scrubbed, caplog) -> None:
    def away() -> None:
        scrubbed.flow.rebuilding = True
        raise CatalogUnavailable("away")

    scrubbed.flow.rebuild_next = away  # type: ignore[method-assign]
    scrubbed.answer = lambda proceed: found("different", changed=1)
    assert scrubbed.verify() == ["verify.mismatch"]
    assert "verify.unnoted flow=gold.daily" in caplog.text
    assert scrubbed.driver.woken == [TABLE]


def test_a_cancellation_that_fails_is_tried_again_and_costs_no_later_one(tmp_path: Path) -> None:
    scrubbed, calls, cancelled = Scrubbed(tmp_path), list[int](), threading.Event()

    def cancel() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError("Spark does not answer")
        cancelled.set()

    scrubbed.cancel = cancel  # type: ignore[method-assign]

    def interrupted(proceed: Callable[[], None]) -> Verification:
        scrubbed.driver.idle = 0.0
        assert cancelled.wait(5), "the watcher lives"
        proceed()
        raise AssertionError("proceed ends it")

    scrubbed.answer = interrupted
    assert scrubbed.verify() == []
    scrubbed.close()


class DrivenGold(test_driver.ScriptedFlow):
    """A scripted flow of the driver that can be asked to rebuild."""

    rebuilding = False

    @property
    def parts(self) -> Any:
        return SimpleNamespace(repair=self)

    def rebuild_next(self) -> None:
        self.rebuilding = True


def test_after_a_restart_the_flow_that_lives_is_rebuilt(tmp_path: Path) -> None:
    made = [DrivenGold(TABLE, [], []), DrivenGold(TABLE, [], [])]
    scrubbed = Scrubbed(tmp_path)
    runner = Runner(
        made[0],  # type: ignore[arg-type]
        depth=0, polled=None, sizer=Sizer(1.0, 10), backoff=Backoff(0.1, 1), events=scrubbed.log,
        remake=lambda: made[1],  # type: ignore[arg-type, return-value]
    )  # fmt: skip
    scrubbed.step = Scrubber(scrubbed.schedule, scrubbed._verify, live_gold([runner]), scrubbed.driver, scrubbed.log)
    runner.restart()
    runner.turn()
    scrubbed.answer = lambda proceed: found("different", changed=1)
    scrubbed.verify()
    assert [one.rebuilding for one in made] == [False, True]
    scrubbed.close()


def test_a_step_that_raises_or_is_never_idle_keeps_no_other_from_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Raising:
        worked = 0

        def due(self) -> list[str]:
            return [TABLE]

        def work(self, attempt: Attempt) -> None:
            self.worked += 1
            raise ValueError

        def postponed(self, table: str) -> None:
            raise AssertionError

    monkeypatch.setattr(idle, "_LOOK", 0.005)
    scrubbed, raising = Scrubbed(tmp_path, interval=0.02), Raising()
    both = IdleWork([raising, scrubbed.step], scrubbed.driver, scrubbed)
    both.start()
    deadline = time.monotonic() + 5
    while (len(scrubbed.asked) < 2 or raising.worked < 2) and time.monotonic() < deadline:
        time.sleep(0.01)
    both.close()
    scrubbed.close()
    assert len(scrubbed.asked) >= 2
    assert raising.worked >= 2
