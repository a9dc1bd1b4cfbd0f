"""Verify Gold tables on a schedule: a step of a run's upkeep.

After three interrupted attempts a sample of the keys is verified, which takes less.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypedDict

from lodestream.flows.parts import Repair
from lodestream.maintenance.schedule import Schedule
from lodestream.maintenance.step import Attempt
from lodestream.observe import (
    EventLog,
    VerifyEqual,
    VerifyFailed,
    VerifyMismatch,
    VerifyPostponed,
    VerifySkipped,
)
from lodestream.recovery.verify.result import DIFFERENT, EQUAL, UNVERIFIABLE, Verification

log = logging.getLogger(__name__)

_TRIES = 3
_SAMPLED_KEYS = 1_000


class Waking(Protocol):
    """What is asked of the driver."""

    def wake(self, names: Iterable[str]) -> None: ...


# Verifies one table: its name, how many keys (None: all), and what is called between two steps.
Verify = Callable[[str, int | None, Callable[[], None]], Verification]


class Scrubber:
    """Verifies what is due; a difference is said and mended, once. `table` is the Gold table that lives now."""

    def __init__(
        self,
        schedule: Schedule,
        verify: Verify,
        table: Callable[[str], Repair],
        driver: Waking,
        events: EventLog,
    ) -> None:
        self._schedule, self._verify, self._table = schedule, verify, table
        self._driver, self._events = driver, events
        self._tries: Counter[str] = Counter()
        self._postponed: Counter[str] = Counter()
        self._rebuilt: set[str] = set()

    def due(self) -> Sequence[str]:
        return [name for name in self._schedule.due() if not self._table(name).rebuilding]

    def work(self, attempt: Attempt) -> None:
        name = attempt.table
        keys = _SAMPLED_KEYS if self._tries[name] >= _TRIES else None
        outcome: Verification | Exception
        try:
            outcome = self._verify(name, keys, attempt.proceed)
        except Exception as error:
            outcome = error
        self._settle(name, outcome, attempt.interrupted)

    def _settle(self, name: str, outcome: Verification | Exception, interrupted: bool) -> None:
        answered = not isinstance(outcome, Exception) and outcome.status != UNVERIFIABLE
        if interrupted and not answered:
            self._tries[name] += 1
            self._schedule.pause(name)
            return
        self._tries.pop(name, None)
        self._postponed.pop(name, None)
        self._schedule.done(name)
        if isinstance(outcome, Exception):
            self._events.emit(VerifyFailed(name, error=type(outcome).__name__, what=_first_line(outcome)))
        elif outcome.status == EQUAL:
            self._rebuilt.discard(name)
            self._events.emit(VerifyEqual(name, rows=outcome.rows.stored, **_facts(outcome)))
        elif outcome.status == DIFFERENT:
            self._differs(name, outcome)
        else:
            self._events.emit(VerifySkipped(name, status=outcome.status, reason=outcome.reason))

    def _differs(self, name: str, found: Verification) -> None:
        """Say it, and rebuild: once. A table that differs right after it was rebuilt is not mended by another one."""
        rebuild = name not in self._rebuilt
        rows, state = found.rows, found.state
        self._events.emit(
            VerifyMismatch(
                name,
                **_facts(found),
                added=rows.added,
                missing=rows.missing,
                changed=rows.changed,
                state_added=state.added if state.any else None,
                state_missing=state.missing if state.any else None,
                state_changed=state.changed if state.any else None,
                columns=dict(rows.columns),
                samples=tuple({"kind": one.kind, "stored": one.stored, "fresh": one.fresh} for one in rows.samples),
                reason=found.reason,
                rebuild=rebuild,
            )
        )
        if rebuild:
            self._rebuilt.add(name)
            self._schedule.again(name)  # what was rebuilt is verified too
            self._ask_for_rebuild(name)
            self._driver.wake([name])

    def _ask_for_rebuild(self, name: str) -> None:
        try:
            self._table(name).rebuild_next()
        except Exception as error:  # it is asked for all the same; only the next process would not know of it
            log.warning("verify.unnoted flow=%s error=%s", name, _first_line(error))

    def postponed(self, table: str) -> None:
        """Once an interval: a driver that is never idle never verifies, and that must not go unnoticed."""
        missed = int(self._schedule.overdue(table))
        if missed > self._postponed[table]:
            self._postponed[table] = missed
            reason = "the driver is never idle for long"
            self._events.emit(VerifyPostponed(table, intervals=missed, reason=reason))


class _Facts(TypedDict):
    ms: float
    snapshot: int | None
    sampled: int | None


def _facts(found: Verification) -> _Facts:
    return {"ms": found.ms, "snapshot": found.snapshot, "sampled": found.sampled}


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
