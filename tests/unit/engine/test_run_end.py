"""What a run's end says of its flows: a requested stop is no failure."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_driver import Pipeline

from lodestream.cli.commands.run import ended_why, exit_code
from lodestream.engine import remedy
from lodestream.engine.remedy import Remedy
from lodestream.engine.run import RunEnd, _close, _reason
from lodestream.errors import ContractViolation, SourceGap

BAD = ContractViolation("silver.zones refused 1 of 3 rows of zones.csv", why="zone is taken")


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setattr("lodestream.engine.driver.LOOK_SECONDS", 0.02)
    monkeypatch.setattr(remedy, "_FIRST", 0.05)
    return Pipeline(tmp_path)


def ended(pipeline: Pipeline) -> RunEnd:
    reason = _reason(pipeline.runners, False, pipeline.stop)
    return RunEnd("run", reason, {runner.name: runner.end() for runner in pipeline.runners})


def test_a_stop_with_a_blocked_flow_exits_0(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.add("zones", [BAD], polled=0.01, remedy=Remedy([tmp_path / "zones.csv"]))
    threading.Timer(0.3, pipeline.stop.set).start()
    assert pipeline.run(once=False) == {"zones": "blocked"}
    end = ended(pipeline)
    assert (end.exit_code, end.errors, end.reason) == (0, [], "asked to stop")
    assert end.flows["zones"].error is BAD, "the report still says what it waits for"


def test_a_flow_that_stopped_for_good_is_an_error_of_the_run(pipeline: Pipeline, tmp_path: Path) -> None:
    gap = SourceGap("records are gone")
    pipeline.add("zones", [BAD], polled=0.01, remedy=Remedy([tmp_path / "zones.csv"]))
    pipeline.add("bronze", [gap], polled=0.01)
    threading.Timer(0.3, pipeline.stop.set).start()
    pipeline.run(once=False)
    end = ended(pipeline)
    assert (end.exit_code, end.errors) == (gap.exit_code, [gap])
    assert end.reason == "1 of 2 flows stopped on an error"
    assert (exit_code(end, interrupted=False), ended_why(end, 1)) == (gap.exit_code, end.reason)


def test_ctrl_c_is_130_whatever_had_stopped_before_and_says_what_had(pipeline: Pipeline) -> None:
    pipeline.add("bronze", [SourceGap("records are gone")], polled=0.01)
    pipeline.add("other", [], polled=0.01)
    threading.Timer(0.3, pipeline.stop.set).start()
    pipeline.run(once=False)
    end = ended(pipeline)
    assert exit_code(end, interrupted=True) == 130
    assert ended_why(end, 130) == "Ctrl-C; bronze had stopped on an error"


def test_a_flow_that_cannot_be_closed_leaves_no_other_open() -> None:
    closed: list[str] = []

    def runner(name: str) -> Any:
        def close() -> None:
            closed.append(name)
            if name == "bronze.a":
                raise RuntimeError("a source of the user's own")

        return SimpleNamespace(name=name, flow=SimpleNamespace(close=close))

    _close([runner("bronze.a"), runner("bronze.b")])
    assert closed == ["bronze.a", "bronze.b"]
