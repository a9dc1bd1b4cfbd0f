"""Which run keeps a table, and how its flow is: told from the logs of runs and from what the table itself says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import psutil

from lodestream.errors import JavaEnded
from lodestream.observe import (
    BatchRefused,
    Event,
    RunEnded,
    RunStarted,
    Trouble,
    last_events,
    run_starts,
)
from lodestream.tables.snapshot import Snapshot

# Runs that are looked at when none lives: those before say nothing of how things are.
_MOST_SHOWN = 200  # characters of a reason
_MOST_ENDED = 20


@dataclass(frozen=True, slots=True)
class RunStatus:
    run: str
    pid: int | None
    alive: bool
    started: float
    ended: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class FlowState:
    state: str = "idle"
    error: str | None = None
    # When the flow last found nothing new; only the run that lives knows it.
    caught_up_at: float | None = None


@dataclass(frozen=True)
class Run:
    """One run by its log."""

    began: RunStarted
    state_dir: Path
    alive: bool

    @property
    def name(self) -> str:
        return self.began.run

    @property
    def tables(self) -> Sequence[str]:
        return self.began.tables

    @cached_property
    def events(self) -> list[Event]:
        return last_events(self.state_dir, self.name)

    @cached_property
    def flows(self) -> Mapping[str, Event]:
        """By table, the last that was said of its flow."""
        return {event.table: event for event in self.events if event.table and event.flow_state is not None}

    @cached_property
    def without_java(self) -> str | None:
        """What ended the run, if its Java process did."""
        return next((what for event in self.events if (what := _lost_java(event)) is not None), None)

    def keeps(self, table: str) -> bool:
        """Whether the table is this run's: it was to keep it, and has not lost it to another run."""
        last = self.flows.get(table)
        return table in self.tables and not isinstance(last, BatchRefused)

    def status(self) -> RunStatus:
        ended = next((event for event in reversed(self.events) if isinstance(event, RunEnded)), None)
        reason = ended.reason if ended else (None if self.alive else "killed")
        return RunStatus(self.name, self.began.pid, self.alive, self.began.time, ended.time if ended else None, reason)


class Runs:
    """The runs that live, and the last ones that ended."""

    def __init__(self, state_dir: Path, told: Mapping[tuple[str, str], FlowState] | None = None) -> None:
        """`told` is what the living runs say of their flows, by run and table: where they do, it is the truth."""
        self._told = told or {}
        living: list[Run] = []
        ended: list[Run] = []
        for began in run_starts(state_dir):
            alive = _lives(began) and not _has_ended(state_dir, began)
            if alive:
                living.append(Run(began, state_dir, alive=True))
            elif len(ended) < _MOST_ENDED:
                ended.append(Run(began, state_dir, alive=False))
        # Of two that live, the older one was there first; of those that ended, the newest says how things are.
        self._runs = [*reversed(living), *ended]

    def current(self) -> RunStatus | None:
        """The run to name: one that keeps tables, before one that came and lost."""
        keeping = (run for run in self._runs if not run.tables or any(map(run.keeps, run.tables)))
        run = next(keeping, self._runs[0] if self._runs else None)
        return run.status() if run else None

    def flow(self, table: str, published: Snapshot | None) -> FlowState:
        """How the flow of a table is; `published` is the last batch that its table holds."""
        keeping = [run for run in self._runs if run.keeps(table)]
        stamp = published.stamp if published else None
        living = [run for run in keeping if run.alive]
        # A run that has published is the one that keeps the table, whoever else is about to try.
        run = next((one for one in living if stamp and one.name == stamp.run), None) or next(
            iter(living or keeping), None
        )
        if run is None:
            return FlowState()
        told = self._told.get((run.name, table))
        if run.alive and told is not None:
            return told
        last = run.flows.get(table)
        stopped = last is not None and last.flow_state == "stopped" and _lost_java(last) is None
        if not run.alive and run.without_java is not None and not stopped:
            # It ended for all of its tables alike, whichever flow met it first.
            return FlowState("idle", run.without_java)
        at = published.timestamp_ms / 1000 if published and stamp and stamp.run == run.name else None
        state = last.flow_state if last is not None and (at is None or last.time > at) else None
        if last is not None and state and (run.alive or state == "stopped"):
            return FlowState(state, _what(last))
        if not run.alive:
            return FlowState()
        # Its log does not say when a batch begins; the run itself would have, had it answered.
        return FlowState("waiting")


def _lost_java(event: Event) -> str | None:
    """How Java ended, if the event tells of that."""
    return event.what if isinstance(event, Trouble) and event.error == JavaEnded.__name__ else None


def _what(event: Event) -> str | None:
    return in_one_line(event.what, getattr(event, "why", None)) if isinstance(event, Trouble) else None


def in_one_line(what: str, why: str | None) -> str:
    """A trouble as a listing shows it: with the first line of its reason, which names a line or a value."""
    first = (why or "").strip().split("\n", 1)[0]
    return f"{what}: {first[:_MOST_SHOWN]}" if first else what


def _has_ended(state_dir: Path, began: RunStarted) -> bool:
    return any(isinstance(event, RunEnded) for event in last_events(state_dir, began.run)[-5:])


def _lives(began: RunStarted) -> bool:
    try:
        # A process that began after the run is another one that was given the same number.
        return began.pid is not None and psutil.Process(began.pid).create_time() <= began.time + 1
    except psutil.Error:
        return False
