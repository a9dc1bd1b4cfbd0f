"""`lode flow`: what a driver's flows are doing, and how to pause, resume or restart one of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lodestream.config import nearest
from lodestream.engine.control import NoAnswer, NothingRuns, RunningDriver, Word, running_drivers
from lodestream.errors import AlreadyRuns, ConfigError
from lodestream.planning.project import Project

if TYPE_CHECKING:
    from lodestream.engine.driver import Driver
    from lodestream.engine.runner import Runner


@dataclass(frozen=True, slots=True)
class FlowState:
    """One flow of a living driver."""

    table: str
    state: str
    run: str
    batches: int
    rows: int
    error: dict[str, Any] | None = None
    # When the flow last looked at its inputs and found nothing new, in epoch seconds.
    caught_up_at: float | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What came of a word to one flow."""

    table: str
    word: str
    run: str
    state: str
    said: str


class FlowDesk:
    """Answers for the flows of one driver."""

    def __init__(self, run: str, runners: list[Runner], driver: Driver) -> None:
        self._run = run
        self._runners = {runner.name: runner for runner in runners}
        self._driver = driver

    def answer(self, word: Word, table: str | None) -> Any:
        if word == "list":
            return [self._state(runner) for runner in self._runners.values()]
        runner = self._runners.get(table or "")
        if runner is None or word not in _SAID:
            return {"state": "unknown", "said": f"this run keeps no {table}, or does not know how to {word}"}
        before = runner.state
        refused = _refused(word, runner)
        if refused is None:
            self._driver.tell(runner.name, lambda one: getattr(one, word)())
        return {"state": runner.state, "said": refused or _SAID[word].get(before, _SAID[word][""])}

    def _state(self, runner: Runner) -> dict[str, Any]:
        error = runner.error
        told = {"name": type(error).__name__, "what": error.what, "why": error.why, "fix": error.fix} if error else None
        counts = {"batches": runner.batches, "rows": runner.rows, "caught_up_at": runner.caught_up_at}
        return {"table": runner.name, "state": runner.shown_state, "run": self._run, **counts, "error": told}


_SAID: dict[str, dict[str, str]] = {
    "pause": {"": "paused", "running": "pauses after the batch under way", "paused": "was paused already"},
    "resume": {"": "was not paused", "paused": "goes on", "running": "goes on"},
    "restart": {"": "begins anew", "running": "begins anew after the batch under way"},
}


def _refused(word: Word, runner: Runner) -> str | None:
    taken = runner.taken_over
    if taken is not None:
        keeper = f": {taken.why}" if taken.why else ""
        return f"is kept by another driver{keeper}; ask that one, or end it and start `lode run`"
    if runner.state == "done":
        return "has caught up and ended: the run is one with --once"
    if runner.state == "stopped" and word != "restart":
        return "has stopped: `lode flow restart` begins it anew"
    return None


def list_flows(project: Project) -> list[FlowState]:
    """Every flow of every driver of the project that lives on this machine."""
    drivers = _drivers(project)
    return [FlowState(**one) for driver in drivers for one in driver.ask("list")]


def living_flows(state_dir: Path, seconds: float) -> list[FlowState]:
    """Every flow of the drivers that live here and answer within that time."""
    found: list[FlowState] = []
    for driver in running_drivers(state_dir):
        with suppress(NoAnswer, NothingRuns, OSError):
            found += [FlowState(**one) for one in driver.ask("list", seconds=seconds)]
    return found


def tell_flow(project: Project, word: Word, table: str) -> Told:
    """Pause, resume or restart the flow that keeps a table."""
    name = _named(project, table)
    drivers = _drivers(project)
    keeper = _keeper([one for one in drivers if name in one.tables], name)
    if keeper is None:
        raise NothingRuns(
            f"no run keeps {name}",
            why="; ".join(f"run {one.run} keeps {', '.join(one.tables)}" for one in drivers),
            fix=f"start one: `lode run --only {name}`",
        )
    answer = keeper.ask(word, name)
    return Told(name, word, keeper.run, answer["state"], answer["said"])


def _keeper(drivers: list[RunningDriver], table: str) -> RunningDriver | None:
    """Of those that were to keep the table, the one that another has not taken it from."""
    if len(drivers) < 2:
        return next(iter(drivers), None)
    return next((one for one in drivers if not _lost(one, table)), drivers[0])


def _lost(driver: RunningDriver, table: str) -> bool:
    try:
        flows = driver.ask("list")
    except (NoAnswer, NothingRuns):
        return True  # who does not answer is not asked when another may
    return any(one["table"] == table and (one["error"] or {}).get("name") == AlreadyRuns.__name__ for one in flows)


def _drivers(project: Project) -> list[RunningDriver]:
    found = running_drivers(project.config.state_dir)
    if not found:
        raise NothingRuns(
            f"nothing runs in {project.config.root}",
            why="no `lode run` of this project lives on this machine",
            fix="start it: `lode run`",
        )
    return found


def _named(project: Project, table: str) -> str:
    """The declared table; the tier may be left out when one table has that name."""
    names = [one.name for one in project.graph]
    found = [name for name in names if table in (name, name.partition(".")[2])]
    if len(found) != 1:
        close = nearest(table, names)
        raise ConfigError(
            f"{table} is no table of this pipeline" if not found else f"{table} may be {' or '.join(found)}",
            why=f"the tables are {', '.join(names)}",
            fix=f"did you mean {close}?" if close else "`lode plan` shows every table",
        )
    return found[0]
