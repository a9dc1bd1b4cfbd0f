"""Batches that take long: told while they are under way, with the tables that wait for their turn meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence

from lodestream.engine.runner import Runner
from lodestream.observe import BatchLong, EventLog

FIRST_SECONDS = 10.0


class LongBatches:
    """Without a word for minutes, a run that works looks like one that hangs."""

    def __init__(self, runners: Sequence[Runner], events: EventLog) -> None:
        self._runners, self._events = runners, events
        self._next: dict[str, float] = {}

    def look(self) -> None:
        now = time.monotonic()
        for runner in self._runners:
            since = runner.working_since
            if since is None:
                self._next.pop(runner.name, None)
                continue
            seconds = now - since
            if seconds >= self._next.get(runner.name, FIRST_SECONDS):
                self._next[runner.name] = 2 * seconds
                queued = tuple(one.name for one in self._runners if one.shown_state == "queued")
                self._events.emit(BatchLong(runner.name, seconds=round(seconds, 1), queued=queued))
