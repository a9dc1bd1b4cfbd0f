"""Sinks beside a run: one that fails holds up nobody, is tried again, and is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console
from served import Listed, Served, Target

from lodestream.cli.commands.status import status_view
from lodestream.config import load_config
from lodestream.engine import sinks as engine_sinks
from lodestream.engine.failures import Backoff
from lodestream.engine.run import RunEnd
from lodestream.engine.sinks import SinkRunner, Sinks
from lodestream.engine.status import read_status
from lodestream.errors import SinkRefused, SinkUnavailable
from lodestream.observe import Event, EventLog, RunStarted, SinkResumed, SinkRetry, events_folder
from lodestream.planning.project import open_project


class Desk:
    """The sinks of one table in a run."""

    def __init__(self, served: Served, *targets: Target, give_up: float = 60.0, kept: bool = True) -> None:
        self.told: list[Event] = []
        events = EventLog(served.folder / "events", "run", self.told.append)
        self.runners = []
        for number, target in enumerate(targets):
            deliverer = served.deliverer("bronze.events", Listed(target, name=f"s{number}"))
            options: dict[str, Any] = {"backoff": Backoff(0.05, give_up), "events": events, "ours": lambda: kept}
            self.runners.append(SinkRunner("bronze.events", f"s{number}", deliverer, **options))
        self.sinks = Sinks(self.runners)
        self.sinks.start()

    def close(self, *, deliver: bool) -> RunEnd:
        self.sinks.close(threading.Event(), deliver=deliver)
        return RunEnd("run", "", sinks=self.sinks.ends())

    def names(self) -> list[str]:
        return [event.name for event in self.told]


def until(true: Callable[[], Any]) -> None:
    limit = time.monotonic() + 30
    while not true():
        assert time.monotonic() < limit, "it did not come"
        time.sleep(0.01)


def test_a_publish_wakes_the_sink_of_its_table(served: Served) -> None:
    served.events(0, 1)
    target = Target()
    desk = Desk(served, target)
    until(lambda: len(target.deliveries) == 1)
    served.events(1, 1)
    desk.sinks.wake("silver.other")
    desk.sinks.wake("bronze.events")
    until(lambda: len(target.deliveries) == 2)
    assert desk.close(deliver=False).errors == []
    assert target.closed == target.opened


def test_a_sink_that_raises_is_tried_again_until_it_takes_everything_and_the_other_goes_on(served: Served) -> None:
    served.events(0, 3)
    broken, sound = Target(fails=[OSError("connection refused")] * 4), Target()
    desk = Desk(served, broken, sound)
    until(lambda: broken.deliveries)
    end = desk.close(deliver=True)
    assert broken.rows == sound.rows == served.rows("bronze.events")
    assert desk.names() == ["sink.retry"] * 4 + ["sink.resumed"]
    told = desk.told[0]
    assert (told.table, told.facts()["sink"], told.facts()["why"]) == (
        "bronze.events",
        "s0",
        "OSError: connection refused",
    )
    assert told.facts()["fix"]
    assert (end.exit_code, end.errors) == (0, [])


def test_once_ends_when_everything_is_delivered(served: Served) -> None:
    target = Target()
    desk = Desk(served, target)
    for first in range(4):
        served.events(first, 1)
    assert desk.close(deliver=True).sinks["bronze.events/s0"].error is None
    assert target.rows == served.rows("bronze.events")


def test_once_says_which_sink_is_behind_and_exits_with_its_code(served: Served) -> None:
    served.events(0, 1)
    desk = Desk(served, Target(fails=[OSError("no route")] * 1000), Target(), give_up=0.2)
    end = desk.close(deliver=True)
    (error,) = end.errors
    assert isinstance(error, SinkUnavailable)
    assert "sink s0" in error.what
    assert end.exit_code == 75
    assert {name: one.state for name, one in end.sinks.items()} == {
        "bronze.events/s0": "stopped",
        "bronze.events/s1": "done",
    }
    assert desk.names()[-1] == "sink.blocked"


def test_a_sink_that_is_blocked_when_a_run_is_asked_to_stop_is_no_error_of_it(served: Served) -> None:
    first = served.events(0, 1)
    target = Target()
    served.deliverer("bronze.events", Listed(target, name="s0")).catch_up()
    served.events(1, 1)
    served.table("bronze.events").manage_snapshots().rollback_to_snapshot(first).commit()
    served.catalog.drop_table("bronze.events")
    served.events(5, 1)
    desk = Desk(served, target)
    until(lambda: desk.names() == ["sink.blocked"])
    end = desk.close(deliver=False)
    assert (end.exit_code, end.sinks["bronze.events/s0"].state) == (0, "behind")
    assert isinstance(end.sinks["bronze.events/s0"].error, SinkRefused)


def test_a_blocked_sink_is_told_once_and_goes_on_by_itself(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_sinks, "_BLOCKED_SECONDS", 0.02)
    served.events(0, 1)
    target = Target(fails=[OSError("down")] * 20)
    desk = Desk(served, target, give_up=0.0)
    until(lambda: target.deliveries)
    desk.close(deliver=False)
    assert (desk.names().count("sink.blocked"), desk.names()[-1]) == (1, "sink.resumed")


def test_a_delivery_that_hangs_ends_no_run_late_and_holds_up_no_other_sink(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_sinks, "_GRACE", 0.2)
    release = threading.Event()
    served.events(0, 1)
    hanging, sound = Target(begin=lambda: release.wait(60)), Target()
    desk = Desk(served, hanging, sound)
    until(lambda: sound.deliveries)
    began = time.monotonic()
    desk.close(deliver=False)
    assert time.monotonic() - began < 5
    release.set()


def test_a_table_that_another_run_keeps_is_not_delivered_here(served: Served) -> None:
    served.events(0, 1)
    target = Target()
    desk = Desk(served, target, kept=False)
    desk.close(deliver=True)
    assert target.deliveries == []


def test_what_is_no_exception_does_not_end_a_sink(served: Served) -> None:
    served.events(0, 2)
    target = Target(fails=[SystemExit(3)])  # type: ignore[list-item]
    desk = Desk(served, target)
    until(lambda: target.deliveries)
    assert desk.close(deliver=True).errors == []
    assert desk.names() == ["sink.retry", "sink.resumed"]
    assert target.rows == served.rows("bronze.events")


def test_a_sink_that_is_interrupted_is_not_done(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_sinks, "_GRACE", 0.1)
    served.events(0, 1)
    go_on = threading.Event()
    target = Target()
    monkeypatch.setattr(target, "begin", lambda: go_on.wait(20))
    desk = Desk(served, target)
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    desk.sinks.close(stop, deliver=True)
    (end,) = desk.sinks.ends().values()
    go_on.set()
    assert (end.state, end.deliveries) == ("stopped", 0)


def retry(sink: str) -> SinkRetry:
    what = f"bronze.events: sink {sink} did not take it"
    return SinkRetry(
        "bronze.events", sink=sink, error="SinkUnavailable", what=what, why=None, fix=None, tries=1, pause_s=1
    )


def test_status_tells_how_far_each_sink_is_and_why_it_is_behind(served: Served) -> None:
    (served.folder / "pipeline.py").write_text(STATUS)
    project = open_project(load_config(served.folder))
    served.events(0, 1)
    served.deliverer("bronze.events", Listed(Target(), name="s0")).catch_up()
    served.events(1, 1)
    served.events(2, 1)
    events = EventLog(events_folder(project.config.state_dir), "run")
    events.emit(RunStarted(pipeline="shop", tables=("bronze.events",), once=False, pid=0))
    events.emit(retry("s0"))
    events.emit(retry("s1"))
    events.emit(SinkResumed("bronze.events", sink="s1", reason="it takes what it is given again"))
    (table,) = read_status(project).tables
    assert [(one.name, one.behind, one.error) for one in table.sinks] == [
        ("s0", 2, "bronze.events: sink s0 did not take it"),
        ("s1", 3, None),
    ]
    console = Console(width=160, record=True)
    console.print(status_view(read_status(project)))
    assert "sink s0 is 2 snapshots behind" in console.export_text()


STATUS = """\
from lodestream import Files, Pipeline
from lodestream.serving import Parquet

shop = Pipeline("shop")
shop.bronze("events", Files("data"), sinks=[Parquet("a.parquet", name="s0"), Parquet("b.parquet", name="s1")])
"""
