"""When the turn of each table comes, remembered beside the project."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

# The longest pause after an interrupted attempt; a tenth of the interval when that is shorter.
_LONGEST_PAUSE = 60.0


class Schedule:
    """When each table had its turn last. Kept in a file, or a driver that restarts often would never come to it."""

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
        """It is due now, however short ago it had its turn."""
        self._not_before.pop(name, None)
        self._last[name] = time.time() - self._intervals[name]
        self._save(name)

    def pause(self, name: str) -> None:
        self._not_before[name] = time.time() + min(_LONGEST_PAUSE, self._intervals[name] / 10)

    def _save(self, *names: str) -> None:
        """Drivers that share the project's tables with --only share the file: each changes its own entries alone."""
        with suppress(OSError):  # a full disk costs a turn too many, never the run
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with _alone(self._file.with_name(f"{self._file.name}.lock")):
                part = self._file.with_name(f"{self._file.name}.{os.getpid()}")
                kept = {**_read(self._file), **{name: self._last[name] for name in names}}
                part.write_text(json.dumps(kept), encoding="utf-8")
                part.replace(self._file)


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
