"""`lode flow`: words to a run in another process, and what is said when there is none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
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
from lodestream.errors import SourceGap
from lodestream.observe.events import EventLog
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


@pytest.fixture
def run(project) -> Iterator[list[Runner]]:
    """A driver of two of the three tables; Silver has stopped."""
    events, stop = EventLog(project / ".lode" / "events", "run1"), threading.Event()

    def runner(name: str, error: Exception | None = None) -> Runner:
        return Runner(
            QuietFlow(name, error),  # type: ignore[arg-type]
            depth=0, polled=0.02, sizer=Sizer(1.0, 10), backoff=Backoff(0.1, 1), events=events,
            remake=lambda: QuietFlow(name),  # type: ignore[arg-type, return-value]
        )  # fmt: skip

    runners = [runner("bronze.orders_raw"), runner("silver.orders", SourceGap("records are gone", why="deleted"))]
    driver = Driver(runners, {}, workers=1, once=False, stop=stop)
    desk = ControlDesk(
        project / ".lode", "run1", [one.name for one in runners], FlowDesk("run1", runners, driver).answer
    )
    desk.open()
    attendant = Attendant(Duty("control", 0.02, desk.attend))
    attendant.start()
    thread = threading.Thread(target=driver.run)
    thread.start()
    yield runners
    stop.set()
    thread.join(10)
    attendant.close()
    desk.close()


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
