"""Verify Gold tables on a schedule, in the running driver, while it has nothing else to do.

A batch comes first, always: a verification begins when no batch was made for a second, and its Spark jobs are cancelled
as soon as one begins. After three interrupted attempts a sample of the keys is verified, which takes less.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from lodestream.observe.events import EventLog
from lodestream.recovery.verify.result import DIFFERENT, EQUAL, UNVERIFIABLE, Differences, Interrupted, Verification

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


class Repairable(Protocol):
    """What is asked of a Gold flow. Asked for at each use: a restart and a blocked flow's next try make it anew."""

    rebuilding: bool

    def rebuild_next(self) -> None: ...


# Verifies one table: its name, how many keys (None: all), and what is called between two steps.
Verify = Callable[[str, int | None, Callable[[], None]], Verification]


class Schedule:
    """When each table was verified last. Kept in a file, or a driver that restarts often would never verify."""

    def __init__(self, intervals: Mapping[str, float], file: Path) -> None:
        self._intervals, self._file = intervals, file
        known = _read(file)
        self._last = {name: known.get(name, time.time()) for name in intervals}
        self._not_before: dict[str, float] = {}
        self._save()

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
        self._save()

    def again(self, name: str) -> None:
        """It is due now, however short ago it was verified."""
        self._not_before.pop(name, None)
        self._last[name] = time.time() - self._intervals[name]

    def pause(self, name: str) -> None:
        self._not_before[name] = time.time() + min(_LONGEST_PAUSE, self._intervals[name] / 10)

    def _save(self) -> None:
        """Drivers that share the project's tables with --only share the file as well: the others' entries stay."""
        part = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        with suppress(OSError):  # a full disk costs a verification too many, never the run
            self._file.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps({**_read(self._file), **self._last}), encoding="utf-8")
            part.replace(self._file)


class Scrubber:
    """One thread that verifies and one that watches over it; `cancel` ends the Spark jobs of a verification.

    Both last as long as the run: Spark keeps a thread of its own for every thread that talks to it.
    """

    def __init__(
        self,
        schedule: Schedule,
        verify: Verify,
        flow: Callable[[str], Repairable],
        driver: Driving,
        events: EventLog,
        cancel: Callable[[], None] = lambda: None,
    ) -> None:
        self._schedule, self._verify, self._flow = schedule, verify, flow
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
            waiting = [name for name in self._schedule.due() if not self._flow(name).rebuilding]
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
        answered = isinstance(outcome, Verification) and outcome.status != UNVERIFIABLE
        if self._interrupted.is_set() and not answered:
            self._tries[name] += 1
            self._schedule.pause(name)
            return
        self._tries.pop(name, None)
        self._postponed.pop(name, None)
        self._schedule.done(name)
        if isinstance(outcome, Exception):
            self._events.emit("verify.failed", name, error=type(outcome).__name__, what=_first_line(outcome))
        elif outcome.status == EQUAL:
            self._rebuilt.discard(name)
            self._events.emit("verify.equal", name, rows=outcome.rows.stored, **_facts(outcome))
        elif outcome.status == DIFFERENT:
            self._differs(name, outcome)
        else:
            self._events.emit("verify.skipped", name, status=outcome.status, reason=outcome.reason)

    def _differs(self, name: str, found: Verification) -> None:
        """Say it, and rebuild: once. A table that differs right after it was rebuilt is not mended by another one."""
        rebuild = name not in self._rebuilt
        facts = {**_facts(found), **_counted(found.rows), **_counted(found.state, "state_")}
        self._events.emit(
            "verify.mismatch",
            name,
            **facts,
            columns=dict(found.rows.columns),
            samples=[{"kind": one.kind, "stored": one.stored, "fresh": one.fresh} for one in found.rows.samples],
            reason=found.reason,
            rebuild=rebuild,
        )
        log.error(
            "verify.mismatch flow=%s %s rebuild=%s",
            name,
            " ".join(f"{key}={value}" for key, value in facts.items() if value is not None),
            str(rebuild).lower(),
        )
        if rebuild:
            self._rebuilt.add(name)
            self._flow(name).rebuild_next()
            self._schedule.again(name)  # what was rebuilt is verified too
            self._driver.wake([name])

    def _say_postponed(self, name: str) -> None:
        """Once an interval: a driver that is never idle never verifies, and that must not go unnoticed."""
        missed = int(self._schedule.overdue(name))
        if missed > self._postponed[name]:
            self._postponed[name] = missed
            self._events.emit("verify.postponed", name, intervals=missed, reason="the driver is never idle for long")


def _facts(found: Verification) -> dict[str, float | int | None]:
    return {"ms": found.ms, "snapshot": found.snapshot, "sampled": found.sampled}


def _counted(found: Differences, prefix: str = "") -> dict[str, int]:
    if prefix and not found.any:
        return {}
    return {f"{prefix}{kind}": getattr(found, kind) for kind in ("added", "missing", "changed")}


def _read(file: Path) -> dict[str, float]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {str(name): float(at) for name, at in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
