"""Any number of listeners: in order, one at a time, and none harms the run or another."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lodestream.observe import BatchPublished, Event, EventLog, FlowPaused, FlowStopped, only, read_events
from lodestream.observe import log as log_module
from some_events import published, started, stopped


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(tmp_path / "events", "run1")


def from_threads(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_every_listener_hears_every_event_once_in_the_order_of_the_log(log: EventLog, tmp_path: Path) -> None:
    heard: tuple[list[Event], list[Event]] = ([], [])
    inside, most = 0, 0

    def listen(event: Event) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.0005)  # others emit meanwhile
        heard[0].append(event)
        inside -= 1

    log.subscribe(listen)
    log.subscribe(heard[1].append)
    from_threads(4, lambda thread: [log.emit(published(f"t{thread}", number)) for number in range(40)] and None)
    log.close()
    logged = list(read_events(tmp_path))
    assert len(logged) == 160
    assert heard[0] == heard[1] == logged
    assert most == 1, "one at a time"
    assert [one.time for one in logged] == sorted(one.time for one in logged)


def test_the_event_was_heard_when_emit_returns(log: EventLog) -> None:
    heard: list[Event] = []
    log.subscribe(heard.append)
    told = log.emit(started())
    assert heard == [told]


def test_a_listener_that_raises_is_logged_once_and_harms_nobody(
    log: EventLog, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []

    def broken(event: Event) -> None:
        heard.append("broken")
        raise OSError("the console is gone")

    log.subscribe(broken)
    log.subscribe(lambda event: heard.append("sound"))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            log.emit(started())
    assert heard == ["broken", "sound"] * 3
    (record,) = [one for one in caplog.records if "listener.failed" in one.getMessage()]
    assert "run.started" in record.getMessage()
    assert "the console is gone" in caplog.text


def test_whoever_unsubscribes_hears_no_more_and_the_others_do(log: EventLog) -> None:
    first: list[Event] = []
    second: list[Event] = []
    leave = log.subscribe(first.append)
    log.subscribe(second.append)
    log.emit(started())
    leave()
    leave()
    log.emit(started())
    assert (len(first), len(second)) == (1, 2)


def test_a_listener_hears_the_types_that_it_asks_for(log: EventLog) -> None:
    heard: list[str | None] = []

    def batch(event: BatchPublished) -> None:
        heard.append(f"{event.table} {event.rows['out']}")

    log.subscribe(only(batch, BatchPublished))
    log.subscribe(only(lambda event: heard.append(event.table), FlowStopped, FlowPaused))
    for event in (started(), published("a"), FlowPaused("b"), stopped("c", "broken")):
        log.emit(event)
    assert heard == ["a 1", "b", "c"]


def test_a_listener_may_emit_subscribe_and_leave(log: EventLog, tmp_path: Path) -> None:
    heard: list[str] = []
    late: list[str] = []

    def once(event: Event) -> None:
        leave()
        log.emit(FlowPaused("a"))
        log.subscribe(lambda event: late.append(event.name))
        heard.append(f"once {event.name}")

    log.subscribe(lambda event: heard.append(event.name))
    leave = log.subscribe(once)
    log.emit(started())
    log.emit(published("a"))
    assert heard == ["run.started", "once run.started", "flow.paused", "batch.published"]
    assert late == ["batch.published"], "what was emitted before it subscribed is not told again"
    assert [one.name for one in read_events(tmp_path)] == ["run.started", "flow.paused", "batch.published"]


def test_a_slow_listener_holds_up_one_thread_and_the_end_waits_for_it(log: EventLog) -> None:
    heard: list[str | None] = []
    begun, go_on = threading.Event(), threading.Event()

    def slow(event: Event) -> None:
        begun.set()
        go_on.wait(10)
        heard.append(event.table)

    log.subscribe(slow)
    first = threading.Thread(target=lambda: log.emit(FlowPaused("a")))
    first.start()
    assert begun.wait(10)
    log.emit(FlowPaused("b"))  # returns although the listener is busy
    assert heard == []
    threading.Timer(0.05, go_on.set).start()
    log.close()
    assert heard == ["a", "b"]
    first.join(10)


def test_a_stuck_listener_silences_no_alert_and_fills_no_memory(
    log: EventLog, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "_MOST_UNTOLD", 3)
    heard: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def stuck(event: Event) -> None:
        begun.set()
        go_on.wait(10)
        heard.append(event.name)

    log.subscribe(stuck)
    first = threading.Thread(target=lambda: log.emit(FlowPaused("a")))
    first.start()
    assert begun.wait(10)
    for _ in range(10):
        log.emit(published("a"))
    with caplog.at_level(logging.ERROR, "lodestream.events"):
        log.emit(stopped("b", "it is gone"))
    assert [record.getMessage().split()[0] for record in caplog.records] == ["flow.stopped"]
    go_on.set()
    first.join(10)
    log.close()
    assert heard == ["flow.paused", *["batch.published"] * 3, "flow.stopped"]
    assert sum(1 for one in read_events(tmp_path) if one.name == "batch.published") == 10, "the file has them all"


def test_after_an_interrupt_in_a_listener_events_are_told_again(log: EventLog) -> None:
    heard: list[str] = []

    def interrupted(event: Event) -> None:
        if not heard:
            heard.append("interrupted")
            raise KeyboardInterrupt
        heard.append(event.name)

    log.subscribe(interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.emit(started())
    log.emit(published("a"))
    assert heard == ["interrupted", "batch.published"]
