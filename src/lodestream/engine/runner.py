"""One flow in a run: its state, when it is due, what its last step meant."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypedDict

from lodestream.engine.blame import refused_code
from lodestream.engine.failures import MOST_TRIES, Backoff, Unexpected, explain
from lodestream.engine.remedy import Remedy
from lodestream.engine.sizing import Sizer
from lodestream.errors import AlreadyRuns, AnotherWriter, LodeError, NotOurTable, SourceChanged, Transient
from lodestream.flows.flow import Flow, Published
from lodestream.observe import (
    BatchPublished,
    BatchRefused,
    Event,
    EventLog,
    FlowBlocked,
    FlowEnded,
    FlowPaused,
    FlowRestarted,
    FlowResumed,
    FlowRetry,
    FlowStopped,
    GapAccepted,
    TableAdopted,
)
from lodestream.runtime.java_process import java_ended

log = logging.getLogger(__name__)

# A flow whose turn comes later than this says that it waits for it.
_LATE_SECONDS = 0.5
State = Literal["waiting", "running", "retrying", "blocked", "paused", "stopped", "done"]
ShownState = State | Literal["queued"]


@dataclass(frozen=True, slots=True)
class FlowEnd:
    """How a flow ended, for the run's report."""

    state: State
    reason: str
    error: LodeError | None
    batches: int
    rows: int
    deleted: int = 0


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
        remedy: Remedy | None = None,
        remake: Callable[[], Flow] | None = None,
    ) -> None:
        """Without a `remedy` every final error stops the flow for good; `remake` gives it anew, for a restart."""
        self.flow = flow
        self.name = flow.name
        self.depth = depth
        self.state: State = "waiting"
        self.error: LodeError | None = None
        self.due = 0.0
        self.batches = 0
        self.rows = 0
        self.deleted = 0
        self.caught_up_at: float | None = None
        self._polled = polled
        self._sizer = sizer
        self._backoff = backoff
        self._events = events
        self._accept_gap = accept_gap
        self._adopt = adopt
        self._every = flow.table.every if paced else None
        self._began = self._last = -math.inf
        self._working: float | None = None
        self._woken = False
        self._outcome: State = "waiting"
        self._again = False
        self._unexpected = 0
        self.recovered = False
        self.committed = -math.inf
        self._remedy = remedy
        self._remake = remake
        self._renew = self._pause = False
        self._taken: LodeError | None = None
        self._last_said: Event | None = None
        self._trouble: tuple[str, ...] | None = None

    @property
    def ended(self) -> bool:
        return self.state in ("stopped", "done")

    @property
    def shown_state(self) -> ShownState:
        """A flow that has waited for its turn for a while is `queued`: whether it is up to date, nobody has looked."""
        late = self.due + _LATE_SECONDS <= time.monotonic()
        return "queued" if self.state == "waiting" and late else self.state

    @property
    def working_since(self) -> float | None:
        """When the batch under way began, on the clock of `time.monotonic`."""
        return self._working

    @property
    def taken_over(self) -> LodeError | None:
        """Says who keeps the table instead of us, from the moment we give it up: without its lease nothing may run."""
        if self._taken is not None:
            return self._taken
        return self.error if self.state == "stopped" and isinstance(self.error, AlreadyRuns) else None

    def wake(self) -> None:
        """Called when an input was published; during a batch it counts for the next one."""
        self._woken = True
        if self._remedy is not None:
            self._remedy.news()
        if self.state == "waiting":
            self.due = self._not_before()

    def is_due(self, now: float) -> bool:
        return self.state in ("waiting", "retrying", "blocked") and self.due <= now

    def remedied(self) -> bool:
        """Whether what blocks the flow may be right again. It looks at files: those of a server that is away hang."""
        return self.state == "blocked" and self._remedy is not None and self._remedy.worth_a_try()

    def unblock(self) -> None:
        """Try again; whether that helps, only the next turn shows."""
        if self.state == "blocked":
            self.due = time.monotonic()

    def looked_since(self, moment: float) -> bool:
        """Whether the flow has looked at its inputs after that moment."""
        return self._began >= moment

    def pause(self) -> None:
        """No further batch until `resume`; the one under way may end."""
        if self.state == "running":
            self._pause = True
        else:
            self._paused()

    def resume(self) -> None:
        self._pause = False
        if self.state == "paused":
            self.state, self.due = "waiting", time.monotonic()
            self._say(FlowResumed(self.name, reason="asked to"))

    def restart(self) -> None:
        """Begin anew, as a new run would, whatever stopped the flow; the batch under way may end.

        A table that another run keeps is left to it.
        """
        if self.taken_over is not None:
            return
        self._renew, self._pause = self._remake is not None, False
        if self.state != "running":
            self.state, self.due = "waiting", time.monotonic()

    def lose(self, error: LodeError) -> None:
        """Another run keeps the table now."""
        if self.state == "running":
            self._taken = error
        elif not self.ended:
            self._give_way(error)

    def turn(self) -> Published | None:
        """One batch, or none. Never raises: what went wrong becomes the runner's state.

        Until the driver calls `settle` the runner counts as running, so that no second thread takes it.
        """
        self._woken = self.recovered = self._again = False
        if self._remedy is not None:
            self._remedy.begin()
        self._began, moment = time.monotonic(), time.time()
        self._working = self._began
        try:
            self._begin_anew()
            published = self._step()
        except Exception as error:
            self._failed(error)
            return None
        finally:
            self._working = None
            for event in self.flow.take_notices():
                self._events.emit(replace(event, table=self.name))
        self.recovered = self._backoff.tries > 0
        self._backoff.succeeded()
        self._unexpected = 0
        self._unblocked()
        self._outcome = "waiting"
        if published is None:
            self.caught_up_at = moment
            self.due = math.inf if self._polled is None else time.monotonic() + self._polled
        else:
            self._succeeded(published)
            self._again = not published.caught_up
        return published

    def settle(self) -> None:
        """Take the state that the turn ended in; called by the driver, which decides alone who runs."""
        self.state = self._outcome
        if self._taken is not None:
            self._give_way(self._taken)
        elif self._renew:
            self.state, self.due = "waiting", time.monotonic()
        elif self._pause and not self.ended:
            self._paused()
        elif self.state == "waiting" and (self._woken or self._again):
            self.due = self._not_before()

    def finish(self, reason: str) -> None:
        self.state = "done"
        self._say(FlowEnded(self.name, reason=reason, batches=self.batches, rows=self.rows))

    def end(self) -> FlowEnd:
        reason = type(self.error).__name__ if self.error else ("caught up" if self.state == "done" else "asked to stop")
        return FlowEnd(self.state, reason, self.error, self.batches, self.rows, self.deleted)

    def _step(self) -> Published | None:
        try:
            published = self.flow.step(self._sizer.rows)
            if published is not None:
                # What a person has accepted was not there: it is no answer to what may come in days or weeks.
                self._accept_gap = self._adopt = False
            return published
        except SourceChanged as broken:
            if not self._accept_gap:
                raise
            published = self.flow.accept_gap()
            self._accept_gap = False
            error = type(broken).__name__
            self._events.emit(GapAccepted(self.name, error=error, what=broken.what, why=broken.why))
            return replace(published, caught_up=False)  # what is left of the source is still to be read
        except NotOurTable as foreign:
            if not self._adopt:
                raise
            published = self.flow.adopt()
            self._adopt = False
            self._events.emit(TableAdopted(self.name, what=foreign.what))
            return replace(published, caught_up=False)

    def _succeeded(self, published: Published) -> None:
        self._last = self._began
        self.committed = time.monotonic()
        self.batches += 1
        self.rows += published.rows.get("out", 0)
        self.deleted += published.rows.get("deleted", 0)
        row_bytes = published.bytes / max(1, published.rows.get("out", 0))
        self._sizer.learn(published.rows.get("in", 0), published.seconds["total"], row_bytes)
        self.due = math.inf if self._polled is None else self._not_before()
        self._events.emit(
            BatchPublished(
                self.name,
                batch=published.batch,
                snapshot=published.snapshot,
                rows=dict(published.rows),
                bytes=published.bytes,
                ms={key: round(value * 1000, 1) for key, value in published.seconds.items()},
                positions=published.positions,
                caught_up=published.caught_up,
            )
        )

    def _failed(self, raw: Exception) -> None:
        # First of all: of an error that came out of a Java process that is gone, nothing more can be asked.
        error = java_ended(raw) or self._explained(raw)
        pause = self._pause_after(error)
        if pause is None and isinstance(error, Unexpected):
            error = error.stopped(self.name, self._unexpected)
        if pause is None and self._blocks(error):
            self._block(raw, error)
        elif pause is None:
            self._outcome, self.error = "stopped", error
            told = BatchRefused if isinstance(error, AnotherWriter) else FlowStopped
            self._say(told(self.name, **_trouble(error), traceback=_trace(raw, error)))
        else:
            self._outcome = "retrying"
            self.due = time.monotonic() + pause
            self._say(self._retry(error, round(pause, 3)))

    def _explained(self, raw: Exception) -> LodeError:
        try:
            known = self.flow.explain(raw)
        except Exception as other:  # of a source of the user's: the thread must not end for it
            log.warning("flow.unexplained table=%s error=%s why=%s", self.name, raw, other)
            known = None
        return known or refused_code(self.flow.table, raw) or explain(raw, self.name)

    def _retry(self, error: LodeError, pause: float) -> FlowRetry:
        """Which attempt has failed, and how many there will be, or for how long."""
        if isinstance(error, Unexpected):
            tries, most = self._unexpected, MOST_TRIES + 1
            return FlowRetry(self.name, **_trouble(error), tries=tries, most_tries=most, pause_s=pause)
        tries, limit = self._backoff.tries, self._backoff.give_up
        return FlowRetry(self.name, **_trouble(error), tries=tries, give_up_s=limit, pause_s=pause)

    def _blocks(self, error: LodeError) -> bool:
        return self._remedy is not None and self._remedy.helps(error)

    def _block(self, raw: Exception, error: LodeError) -> None:
        """The same trouble is told once, however often it is met again, and again after anything else was told.

        Whoever reads the log takes the last word for the flow's state. The traceback is in the first one.
        """
        self.error, self._outcome = error, "blocked"
        self.due = math.inf  # until it is seen to be worth a try
        if self._remedy is not None:
            self._remedy.wait(error)
        # A port, a time or a number of tries in the reason makes no other trouble.
        trouble = (type(error).__name__, error.what, re.sub(r"\d+", "", error.why or ""))
        known, self._trouble = trouble == self._trouble, trouble
        if not known or not isinstance(self._last_said, FlowBlocked):
            trace = None if known else _trace(raw, error)
            self._say(FlowBlocked(self.name, **_trouble(error), traceback=trace))

    def _say(self, event: Event) -> None:
        self._last_said = self._events.emit(event)

    def _unblocked(self) -> None:
        if self.error is not None:
            self._say(FlowResumed(self.name, reason="what had stopped it is right again"))
            self.error, self.recovered = None, True
        self._trouble = None
        if self._remedy is not None:
            self._remedy.succeeded()

    def _begin_anew(self) -> None:
        """A flow that was blocked reads its files anew as well: its contract may have been what was wrong."""
        if self._remake is None or not (self._renew or self.error is not None):
            return
        renewed, self._renew = self._renew, False
        before, self.flow = self.flow, self._remake()
        before.close()
        if renewed:
            self.error = None
            self._unexpected = 0
            self._backoff.succeeded()
            self._say(FlowRestarted(self.name))

    def _paused(self) -> None:
        self._pause = False
        self.state = "paused"
        self._say(FlowPaused(self.name))

    def _give_way(self, error: LodeError) -> None:
        self._taken, self.error, self.state = None, error, "stopped"
        self._say(BatchRefused(self.name, error=type(error).__name__, what=error.what, why=error.why))

    def _pause_after(self, error: LodeError) -> float | None:
        """How long to wait before the next try; None when there shall be none."""
        self._unexpected += isinstance(error, Unexpected)
        if not isinstance(error, Transient) or self._unexpected > MOST_TRIES:
            return None
        return self._backoff.failed()

    def _not_before(self) -> float:
        """Now, or when the table's own cadence allows it."""
        return max(time.monotonic(), self._last + (self._every or 0.0))


class _Trouble(TypedDict):
    """An error as events tell it."""

    error: str
    what: str
    why: str | None
    fix: str | None


def _trouble(error: LodeError) -> _Trouble:
    return {"error": type(error).__name__, "what": error.what, "why": error.why, "fix": error.fix}


def _trace(raw: Exception, error: LodeError) -> str | None:
    if raw is error and error.__cause__ is None:
        return None
    import traceback

    return "".join(traceback.format_exception(raw))[-8000:]
