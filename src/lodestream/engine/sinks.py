"""Beside the flows of a run: each sink on a thread of its own, so that none holds up a table or another sink."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lodestream.engine.failures import Backoff
from lodestream.errors import LodeError, SinkUnavailable, Transient
from lodestream.observe import EventLog, SinkBlocked, SinkRefreshed, SinkResumed, SinkRetry

if TYPE_CHECKING:
    from lodestream.serving.deliver import Deliverer

# Seconds between looks of a sink that nobody wakes: somebody else may have committed to its table.
_LOOK_SECONDS = 5.0
_WHOLE = "changes that it lacked are gone: it was given the whole table"
# Seconds between tries of a sink that has failed for so long that somebody was told.
_BLOCKED_SECONDS = 60.0
# How long a delivery may go on after the run was asked to stop; what it did not take is given again.
_GRACE = 10.0


@dataclass(frozen=True, slots=True)
class SinkEnd:
    """How a sink ended, for the run's report; one that is `stopped` was to have everything, and has not."""

    state: Literal["done", "behind", "stopped"]
    error: LodeError | None
    deliveries: int


class SinkRunner:
    """Drives one sink until it is stopped, or (`finish`) until it has everything or has failed for too long."""

    def __init__(
        self,
        table: str,
        sink: str,
        deliverer: Deliverer,
        *,
        backoff: Backoff,
        events: EventLog,
        ours: Callable[[], bool] = lambda: True,
    ) -> None:
        """`ours` says whether this run still keeps the table: whoever does delivers it."""
        self.table = table
        self.sink = sink
        self.error: LodeError | None = None
        self._deliverer = deliverer
        self._backoff = backoff
        self._events = events
        self._ours = ours
        self._deliveries = 0
        self._woken = threading.Event()
        self._woken.set()
        self._finish, self._stop, self._ending = threading.Event(), threading.Event(), threading.Event()
        self._blocked = False
        self._complete = False  # whether the last look gave it everything that was due
        self._thread = threading.Thread(target=self._work, name=f"lode-sink-{table}-{sink}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def finish(self) -> None:
        """Deliver what is due now, then end."""
        self._finish.set()
        self._ending.set()
        self._woken.set()

    def stop(self) -> None:
        """End after the delivery that is under way."""
        self._stop.set()
        self._ending.set()
        self._woken.set()

    def join(self, patience: float) -> bool:
        """Whether it has ended."""
        self._thread.join(patience)
        return not self._thread.is_alive()

    def end(self) -> SinkEnd:
        behind: Literal["behind", "stopped"] = "stopped" if self._finish.is_set() else "behind"
        done = self.error is None and self._complete and not self._thread.is_alive()
        return SinkEnd("done" if done else behind, self.error, self._deliveries)

    def _work(self) -> None:
        pause = 0.0
        while self._wait(pause):
            self._woken.clear()
            last = self._finish.is_set()
            pause = self._turn()
            if last and (self.error is None or self._blocked):
                break
        self._deliverer.close()

    def _wait(self, pause: float) -> bool:
        """Until it is time; False when the sink is to end. News does not cut the pause after a failure short."""
        until = self._woken if self.error is None else self._stop if self._finish.is_set() else self._ending
        until.wait(pause)
        return not self._stop.is_set()

    def _turn(self) -> float:
        """One look; answers how long to wait for the next."""
        if not self._ours():
            self._complete = True  # whoever keeps the table delivers it
            return _LOOK_SECONDS
        try:
            found = self._deliverer.catch_up(lambda: not self._stop.is_set() and self._ours())
        except BaseException as raw:  # a client library may end its thread by what is no Exception
            return self._failed(raw)
        self._complete = not self._stop.is_set()
        self._deliveries += found.deliveries
        if found.refreshed:
            self._events.emit(SinkRefreshed(self.table, sink=self.sink, reason=_WHOLE))
        self._succeeded()
        return _LOOK_SECONDS

    def _failed(self, raw: BaseException) -> float:
        error = raw if isinstance(raw, LodeError) else _unavailable(self.table, self.sink, raw)
        known, self.error = self.error, error
        pause = self._backoff.failed() if isinstance(error, Transient) else None
        if pause is not None:
            self._events.emit(
                SinkRetry(
                    self.table,
                    sink=self.sink,
                    error=type(error).__name__,
                    what=error.what,
                    why=error.why,
                    fix=error.fix,
                    tries=self._backoff.tries,
                    give_up_s=self._backoff.give_up,
                    pause_s=round(pause, 3),
                )
            )
            return pause
        if not self._blocked or known is None or known.what != error.what:
            name = type(error).__name__
            self._events.emit(
                SinkBlocked(self.table, sink=self.sink, error=name, what=error.what, why=error.why, fix=error.fix)
            )
        self._blocked = True
        return _BLOCKED_SECONDS

    def _succeeded(self) -> None:
        if self.error is not None:
            self._events.emit(SinkResumed(self.table, sink=self.sink, reason="it takes what it is given again"))
        self._backoff.succeeded()
        self.error, self._blocked = None, False


class Sinks:
    """All sinks of a run. `wake` is called by flows, and never waits."""

    def __init__(self, runners: Sequence[SinkRunner]) -> None:
        self._runners = runners
        self._by_table: dict[str, list[SinkRunner]] = {}
        for runner in runners:
            self._by_table.setdefault(runner.table, []).append(runner)

    def start(self) -> None:
        for runner in self._runners:
            runner.start()

    def wake(self, table: str) -> None:
        for runner in self._by_table.get(table, ()):
            runner.wake()

    def close(self, stop: threading.Event, *, deliver: bool) -> None:
        """End them all: with `deliver`, when each has what is due, unless the run is asked to stop meanwhile."""
        if deliver:
            for runner in self._runners:
                runner.finish()
            while not stop.is_set() and not all(runner.join(0.05) for runner in self._runners):
                pass
        for runner in self._runners:
            runner.stop()
        until = time.monotonic() + _GRACE
        for runner in self._runners:
            runner.join(max(0.0, until - time.monotonic()))

    def ends(self) -> dict[str, SinkEnd]:
        return {f"{one.table}/{one.sink}": one.end() for one in self._runners}


def _unavailable(table: str, sink: str, raw: BaseException) -> SinkUnavailable:
    said = " ".join(str(raw).split())
    return SinkUnavailable(
        f"{table}: sink {sink} did not take what it was given",
        why=(f"{type(raw).__name__}: {said}" if said else type(raw).__name__)[:400],
        fix="see that its target is there and takes writes: it goes on by itself from where it was",
    )
