"""One flow in a run: its state, when it is due, what its last step meant."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Literal

from lodestream.engine.failures import MOST_TRIES, Backoff, Unexpected, explain
from lodestream.engine.sizing import Sizer
from lodestream.errors import AnotherWriter, LodeError, NotOurTable, SourceChanged, Transient
from lodestream.flows.flow import Flow, Published
from lodestream.observe.events import EventLog
from lodestream.runtime.java_process import java_ended

State = Literal["waiting", "running", "retrying", "stopped", "done"]


@dataclass(frozen=True, slots=True)
class FlowEnd:
    """How a flow ended, for the run's report."""

    state: State
    reason: str
    error: LodeError | None
    batches: int
    rows: int


class Runner:
    """Drives one flow. The driver decides when; `turn` runs at most one batch."""

    def __init__(
        self,
        flow: Flow,
        *,
        depth: int,
        polled: float | None,
        sizer: Sizer,
        backoff: Backoff,
        events: EventLog,
        accept_gap: bool = False,
        adopt: bool = False,
        paced: bool = True,
    ) -> None:
        self.flow = flow
        self.name = flow.name
        self.depth = depth
        self.state: State = "waiting"
        self.error: LodeError | None = None
        self.due = 0.0
        self.batches = 0
        self.rows = 0
        self._polled = polled
        self._sizer = sizer
        self._backoff = backoff
        self._events = events
        self._accept_gap = accept_gap
        self._adopt = adopt
        self._every = flow.table.every if paced else None
        self._began = self._last = -math.inf
        self._woken = False
        self._outcome: State = "waiting"
        self._again = False
        self._unexpected = 0
        self.recovered = False

    @property
    def ended(self) -> bool:
        return self.state in ("stopped", "done")

    def wake(self) -> None:
        """Called when an input was published; during a batch it counts for the next one."""
        self._woken = True
        if self.state == "waiting":
            self.due = self._not_before()

    def turn(self) -> Published | None:
        """One batch, or none. Never raises: what went wrong becomes the runner's state.

        Until the driver calls `settle` the runner counts as running, so that no second thread takes it.
        """
        self._woken = self.recovered = self._again = False
        self._began = time.monotonic()
        try:
            published = self._step()
        except Exception as error:
            self._failed(error)
            return None
        finally:
            for event, facts in self.flow.take_notices():
                self._events.emit(event, self.name, **facts)
        self.recovered = self._backoff.tries > 0
        self._backoff.succeeded()
        self._unexpected = 0
        self._outcome = "waiting"
        if published is None:
            self.due = math.inf if self._polled is None else time.monotonic() + self._polled
        else:
            self._succeeded(published)
            self._again = not published.caught_up
        return published

    def settle(self) -> None:
        """Take the state that the turn ended in; called by the driver, which decides alone who runs."""
        self.state = self._outcome
        if self.state == "waiting" and (self._woken or self._again):
            self.due = self._not_before()

    def finish(self, reason: str) -> None:
        self.state = "done"
        self._events.emit("flow.ended", self.name, reason=reason, batches=self.batches, rows=self.rows)

    def end(self) -> FlowEnd:
        reason = type(self.error).__name__ if self.error else ("caught up" if self.state == "done" else "asked to stop")
        return FlowEnd(self.state, reason, self.error, self.batches, self.rows)

    def _step(self) -> Published | None:
        try:
            return self.flow.step(self._sizer.rows)
        except SourceChanged as broken:
            if not self._accept_gap:
                raise
            published = self.flow.accept_gap()
            self._accept_gap = False
            self._events.emit("gap.accepted", self.name, error=type(broken).__name__, what=broken.what, why=broken.why)
            return published
        except NotOurTable as foreign:
            if not self._adopt:
                raise
            published = self.flow.adopt()
            self._adopt = False
            self._events.emit("table.adopted", self.name, what=foreign.what)
            return published

    def _succeeded(self, published: Published) -> None:
        self._last = self._began
        self.batches += 1
        self.rows += published.rows.get("out", 0)
        self._sizer.learn(published.rows.get("in", 0), published.seconds["total"])
        self.due = math.inf if self._polled is None else self._not_before()
        self._events.emit(
            "batch.published",
            self.name,
            batch=published.batch,
            snapshot=published.snapshot,
            rows=dict(published.rows),
            bytes=published.bytes,
            ms={key: round(value * 1000, 1) for key, value in published.seconds.items()},
            positions=published.positions,
            caught_up=published.caught_up,
        )

    def _failed(self, raw: Exception) -> None:
        # First of all: of an error that came out of a Java process that is gone, nothing more can be asked.
        error = java_ended(raw) or self.flow.explain(raw) or explain(raw, self.name)
        pause = self._pause(error)
        if pause is None and isinstance(error, Unexpected):
            error = error.stopped(self.name, self._unexpected)
        facts = {"error": type(error).__name__, "what": error.what, "why": error.why, "fix": error.fix}
        if pause is None:
            self._outcome, self.error = "stopped", error
            event = "batch.refused" if isinstance(error, AnotherWriter) else "flow.stopped"
            self._events.emit(event, self.name, **facts, **_trace(raw, error))
        else:
            self._outcome = "retrying"
            self.due = time.monotonic() + pause
            self._events.emit("flow.retry", self.name, **facts, tries=self._backoff.tries, pause_s=round(pause, 3))

    def _pause(self, error: LodeError) -> float | None:
        """How long to wait before the next try; None when there shall be none."""
        self._unexpected += isinstance(error, Unexpected)
        if not isinstance(error, Transient) or self._unexpected > MOST_TRIES:
            return None
        return self._backoff.failed()

    def _not_before(self) -> float:
        """Now, or when the table's own cadence allows it."""
        return max(time.monotonic(), self._last + (self._every or 0.0))


def _trace(raw: Exception, error: LodeError) -> dict[str, str]:
    if raw is error and error.__cause__ is None:
        return {}
    import traceback

    return {"traceback": "".join(traceback.format_exception(raw))[-8000:]}
