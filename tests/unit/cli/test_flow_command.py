"""`lode flow`: words to a run in another process, and what is said when there is none."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lodestream.engine.attendant import Attendant, Duty
from lodestream.engine.control import ControlDesk
from lodestream.engine.driver import Driver
from lodestream.engine.failures import Backoff
from lodestream.engine.flow_control import FlowDesk
from lodestream.engine.runner import Runner
from lodestream.engine.sizing import Sizer
from lodestream.errors import AlreadyRuns, SourceGap
from lodestream.observe import EventLog
from lodestream.starter import write_project


class QuietFlow:
    """Has nothing new, or stops at once."""

    def __init__(self, name: str, error: Exception | None = None) -> None:
        self.name, self.error = name, error
        self.table = SimpleNamespace(every=None)

    def step(self, rows: int) -> None:
        if self.error:
            raise self.error

    def take_notices(self) -> list[Any]:
        return []

    def explain(self, error: Exception) -> None:
        return None

    def close(self) -> None:
        return None


@pytest.fixture
def project(folder):
    write_project(folder / "shop")
    return folder / "shop"


@contextmanager
def living(project: Path, run: str, errors: Mapping[str, Exception | None]) -> Iterator[tuple[list[Runner], Driver]]:
    """A driver of these tables, that answers."""
    events, stop = EventLog(project / ".lode" / "events", run), threading.Event()

    def runner(name: str, error: Exception | None) -> Runner:
        return Runner(
            QuietFlow(name, error),  # type: ignore[arg-type]
            depth=0, polled=0.02, sizer=Sizer(1.0, 10), backoff=Backoff(0.1, 1), events=events,
            remake=lambda: QuietFlow(name),  # type: ignore[arg-type, return-value]
        )  # fmt: skip

    runners = [runner(name, error) for name, error in errors.items()]
    driver = Driver(runners, {}, workers=1, once=False, stop=stop)
    desk = ControlDesk(project / ".lode", run, list(errors), FlowDesk(run, runners, driver).answer)
    desk.open()
    attendant = Attendant(Duty("control", 0.02, desk.attend))
    attendant.start()
    thread = threading.Thread(target=driver.run)
    thread.start()
    try:
        yield runners, driver
    finally:
        stop.set()
        thread.join(10)
        attendant.close()
        desk.close()


@pytest.fixture
def run(project) -> Iterator[list[Runner]]:
    """A driver of two of the three tables; Silver has stopped."""
    gone = SourceGap("records are gone", why="deleted")
    with living(project, "run1", {"bronze.orders_raw": None, "silver.orders": gone}) as (runners, _):
        yield runners


def until_stopped(run: list[Runner]) -> None:
    for _ in range(500):
        if run[1].state == "stopped":
            return
        threading.Event().wait(0.01)
    pytest.fail("it did not stop")


def test_the_run_itself_says_what_each_flow_does_and_why(lode, project, run):
    until_stopped(run)
    ended = lode("--project", project, "flow", "list", "--json")
    assert ended.code == 0
    states = {one["table"]: one for one in ended.json["flows"]}
    assert states["silver.orders"]["state"] == "stopped"
    assert states["silver.orders"]["error"]["what"] == "records are gone"
    assert states["bronze.orders_raw"]["state"] in ("waiting", "running")
    assert "SourceGap: records are gone" in lode("--project", project, "flow", "list").out


def test_one_flow_is_paused_and_resumed(lode, project, run):
    lode("--project", project, "flow", "pause", "orders_raw")
    for _ in range(500):
        if run[0].state == "paused":
            break
        threading.Event().wait(0.01)
    assert run[0].state == "paused"
    again = lode("--project", project, "flow", "pause", "bronze.orders_raw", "--json").json
    assert (again["state"], again["said"]) == ("paused", "was paused already")
    assert lode("--project", project, "flow", "resume", "bronze.orders_raw").out == "bronze.orders_raw goes on\n"
    assert run[0].state in ("waiting", "running")
    assert lode("--project", project, "flow", "resume", "bronze.orders_raw").out in (
        "bronze.orders_raw was not paused\n",
        "bronze.orders_raw goes on\n",
    )


def test_a_stopped_flow_is_restarted_and_cannot_be_paused(lode, project, run):
    until_stopped(run)
    assert "has stopped" in lode("--project", project, "flow", "pause", "silver.orders").out
    assert lode("--project", project, "flow", "restart", "silver.orders").out == "silver.orders begins anew\n"
    for _ in range(500):
        if run[1].state == "waiting" and run[1].error is None:
            return
        threading.Event().wait(0.01)
    pytest.fail(f"it is {run[1].state}")


def test_a_table_that_was_taken_over_is_not_restarted_without_its_lease(lode, project):
    taken = AlreadyRuns("silver.orders was taken over by another driver", why="run run2 on far, process 7")
    with living(project, "run1", {"bronze.orders_raw": None, "silver.orders": None}) as (runners, driver):
        driver.give_way({"silver.orders": taken})
        until_stopped(runners)
        for word in ("restart", "pause"):
            told = lode("--project", project, "flow", word, "silver.orders", "--json").json
            assert told["state"] == "stopped"
            assert told["said"].startswith("is kept by another driver: run run2 on far, process 7; ask that one")
        driver.tell("silver.orders", Runner.restart)
        assert (runners[1].state, runners[1].error) == ("stopped", taken)


def test_the_driver_that_has_taken_a_table_over_is_the_one_that_is_told(lode, project):
    tables = {"bronze.orders_raw": None, "silver.orders": None}
    with living(project, "run1", tables) as (old, driver), living(project, "run2", {"silver.orders": None}) as (new, _):
        driver.give_way({"silver.orders": AlreadyRuns("silver.orders was taken over by another driver")})
        until_stopped(old)
        told = lode("--project", project, "flow", "pause", "silver.orders", "--json").json
        assert told["run"] == "run2"
        for _ in range(500):
            if new[0].state == "paused":
                return
            threading.Event().wait(0.01)
        pytest.fail(f"it is {new[0].state}")


def test_nothing_runs(lode, project):
    ended = lode("--project", project, "flow", "restart", "silver.orders")
    assert ended.code == 1
    assert "NothingRuns: nothing runs in" in ended.err
    assert "lode run" in ended.err
    assert lode("--project", project, "flow", "list", "--json").json["error"]["name"] == "NothingRuns"


def test_a_table_that_no_run_keeps_and_one_that_does_not_exist(lode, project, run):
    ended = lode("--project", project, "flow", "pause", "gold.daily_revenue")
    assert ended.code == 1
    assert "run run1 keeps bronze.orders_raw, silver.orders" in ended.err
    unknown = lode("--project", project, "flow", "pause", "silver.ordres")
    assert unknown.code == 2
    assert "did you mean silver.orders?" in unknown.err
