"""Verify Gold tables on a schedule, in the running driver, while it has nothing else to do.

A batch comes first, always: a verification begins when no batch was made for a second, and its Spark jobs are cancelled
as soon as one begins. After three interrupted attempts a sample of the keys is verified, which takes less.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypedDict

from lodestream.flows.parts import Repair
from lodestream.observe import (
    EventLog,
    VerifyEqual,
    VerifyFailed,
    VerifyMismatch,
    VerifyPostponed,
    VerifySkipped,
)
from lodestream.recovery.verify.result import DIFFERENT, EQUAL, UNVERIFIABLE, Interrupted, Verification

log = logging.getLogger(__name__)

# Seconds without a batch before a verification begins, and between two looks whether one has begun meanwhile.
QUIET = 1.0
_LOOK = 0.1
_TRIES = 3
_SAMPLED_KEYS = 1_000
# The longest pause after an interrupted attempt; a tenth of the interval when that is shorter.
_LONGEST_PAUSE = 60.0


class Driving(Protocol):
    """What is asked of the driver."""

    def idle_for(self) -> float: ...

    def wake(self, names: Iterable[str]) -> None: ...


# Verifies one table: its name, how many keys (None: all), and what is called between two steps.
Verify = Callable[[str, int | None, Callable[[], None]], Verification]


class Schedule:
    """When each table was verified last. Kept in a file, or a driver that restarts often would never verify."""

    def __init__(self, intervals: Mapping[str, float], file: Path) -> None:
        self._intervals, self._file = intervals, file
        known = _read(file)
        self._last = {name: known.get(name, time.time()) for name in intervals}
        self._not_before: dict[str, float] = {}
        self._save(*(name for name in intervals if name not in known))

    def due(self) -> list[str]:
        """The longest overdue first."""
        now = time.time()
        found = [name for name in self._last if self.overdue(name) >= 0 and self._not_before.get(name, 0) <= now]
        return sorted(found, key=self.overdue, reverse=True)

    def overdue(self, name: str) -> float:
        """Seconds since it was due, in units of its interval."""
        return (time.time() - self._last[name]) / self._intervals[name] - 1

    def done(self, name: str) -> None:
        self._not_before.pop(name, None)
        self._last[name] = time.time()
        self._save(name)

    def again(self, name: str) -> None:
        """It is due now, however short ago it was verified."""
        self._not_before.pop(name, None)
        self._last[name] = time.time() - self._intervals[name]
        self._save(name)

    def pause(self, name: str) -> None:
        self._not_before[name] = time.time() + min(_LONGEST_PAUSE, self._intervals[name] / 10)

    def _save(self, *names: str) -> None:
        """Drivers that share the project's tables with --only share the file: each changes its own entries alone."""
        with suppress(OSError):  # a full disk costs a verification too many, never the run
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with _alone(self._file.with_name(f"{self._file.name}.lock")):
                part = self._file.with_name(f"{self._file.name}.{os.getpid()}")
                kept = {**_read(self._file), **{name: self._last[name] for name in names}}
                part.write_text(json.dumps(kept), encoding="utf-8")
                part.replace(self._file)


class Scrubber:
    """One thread that verifies and one that watches over it; `cancel` ends the Spark jobs of a verification.

    Both last as long as the run: Spark keeps a thread of its own for every thread that talks to it.
    """

    def __init__(
        self,
        schedule: Schedule,
        verify: Verify,
        table: Callable[[str], Repair],
        driver: Driving,
        events: EventLog,
        cancel: Callable[[], None] = lambda: None,
    ) -> None:
        self._schedule, self._verify, self._table = schedule, verify, table
        self._driver, self._events, self._cancel = driver, events, cancel
        self._ended = threading.Event()
        self._interrupted = threading.Event()
        self._tries: Counter[str] = Counter()
        self._postponed: Counter[str] = Counter()
        self._rebuilt: set[str] = set()
        self._running = threading.Event()
        self._thread = threading.Thread(target=self._work, name="lode-verify", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name="lode-verify-watch", daemon=True)
        self._watcher.start()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(30)

    def _work(self) -> None:
        while not self._ended.wait(_LOOK):
            waiting = [name for name in self._schedule.due() if not self._table(name).rebuilding]
            if not waiting:
                continue
            if self._driver.idle_for() >= QUIET:
                self.verify(waiting[0])
            else:
                self._say_postponed(waiting[0])

    def verify(self, name: str) -> None:
        """One attempt, given up as soon as a batch begins."""
        keys = _SAMPLED_KEYS if self._tries[name] >= _TRIES else None
        outcome: Verification | Exception
        self._interrupted.clear()
        self._running.set()
        try:
            outcome = self._verify(name, keys, self._proceed)
        except Exception as error:
            outcome = error
        finally:
            self._running.clear()
        self._settle(name, outcome)

    def _watch(self) -> None:
        while not self._ended.is_set() or self._running.is_set():
            if not self._running.wait(1.0):
                continue
            if self._ended.is_set() or self._driver.idle_for() == 0:
                self._interrupted.set()
                self._cancel_jobs()
            time.sleep(_LOOK)

    def _cancel_jobs(self) -> None:
        try:
            self._cancel()
        except Exception as error:  # the next look tries again; without a watcher no batch would come first any more
            log.warning("verify.uncancelled error=%s", _first_line(error))

    def _proceed(self) -> None:
        if self._interrupted.is_set():
            raise Interrupted

    def _settle(self, name: str, outcome: Verification | Exception) -> None:
        answered = not isinstance(outcome, Exception) and outcome.status != UNVERIFIABLE
        if self._interrupted.is_set() and not answered:
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

    def _say_postponed(self, name: str) -> None:
        """Once an interval: a driver that is never idle never verifies, and that must not go unnoticed."""
        missed = int(self._schedule.overdue(name))
        if missed > self._postponed[name]:
            self._postponed[name] = missed
            reason = "the driver is never idle for long"
            self._events.emit(VerifyPostponed(name, intervals=missed, reason=reason))


class _Facts(TypedDict):
    ms: float
    snapshot: int | None
    sampled: int | None


def _facts(found: Verification) -> _Facts:
    return {"ms": found.ms, "snapshot": found.snapshot, "sampled": found.sampled}


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Between reading and writing nobody else writes. The lock goes with the process that holds it."""
    with lock.open("a") as held:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _read(file: Path) -> dict[str, float]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {str(name): float(at) for name, at in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
