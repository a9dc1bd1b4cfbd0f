"""The event log of a run: append-only, on disk and in the ears of whoever listens.

One file per run under the project's state folder: a second process can read it while the run goes on, and deleting it
loses history, never progress.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, TypeVar

from lodestream.observe.event import Event

log = logging.getLogger("lodestream.events")

# Beside the log, its events that are few: who asks for the state of flows need not read a million batches.
FEW = ".few"
# Seconds that the end of a run waits for a listener on another thread.
_PATIENCE = 5.0
_MOST_UNTOLD = 10_000

Listener = Callable[[Event], None]
E = TypeVar("E", bound=Event)


def only(listener: Callable[[E], None], *types: type[E]) -> Listener:
    """A listener that hears events of these types alone."""

    def hear(event: Event) -> None:
        if isinstance(event, types):
            listener(event)

    return hear


class EventLog:
    """Where a run's events go. Safe to call from every flow's thread.

    A listener hears every event that was emitted after it subscribed, once, in the order of the log file, and never two
    at a time. It is called on a thread that emits: by the time `emit` returns its event has been heard, unless another
    thread was in the middle of telling; then that one tells it next. So a slow listener holds flows up, and should hand
    over to a thread of its own. It may emit, subscribe and unsubscribe itself. What it raises is logged once and harms
    neither the run nor the other listeners.
    """

    def __init__(self, folder: Path, run: str, *listeners: Listener) -> None:
        self.run = run
        self._path = folder / f"{run}.jsonl"
        self._lock = threading.Lock()
        self._file: IO[str] | None = None
        self._few: IO[str] | None = None
        self._audience: tuple[_Subscription, ...] = tuple(map(_Subscription, listeners))
        self._untold: deque[tuple[Event, tuple[_Subscription, ...]]] = deque()
        self._telling: threading.Thread | None = None
        self._told = threading.Condition(self._lock)

    def emit(self, event: E) -> E:
        """Log it and tell it to the listeners; the event as it was logged, with its run and moment."""
        with self._lock:
            stamped = replace(event, run=self.run, time=time.time())
            self._write(stamped)
            # A listener that does not come back must not fill the memory: what is many is then in the file alone.
            if len(self._untold) < _MOST_UNTOLD or not stamped.frequent:
                self._untold.append((stamped, self._audience))
            # One at a time: whoever tells already goes on with this one, also when a listener itself has emitted it.
            tells = self._telling is None
            if tells:
                self._telling = threading.current_thread()
        # Before the listeners, one of which may be stuck: an alert gets through.
        if log.isEnabledFor(stamped.severity.level):
            log.log(stamped.severity.level, "%s", stamped.line())
        if tells:
            self._tell()
        return stamped

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear every event from now on, until what is returned is called; a call under way then may still end."""
        subscription = _Subscription(listener)
        with self._lock:
            self._audience = (*self._audience, subscription)
        return lambda: self._leave(subscription)

    def close(self) -> None:
        """Everything that was emitted has been heard, unless a listener does not come back."""
        with self._lock:
            if self._telling is not threading.current_thread():
                self._told.wait_for(lambda: self._telling is None, timeout=_PATIENCE)
            for one in (self._file, self._few):
                if one:
                    one.close()
            self._file = self._few = None

    def _leave(self, subscription: _Subscription) -> None:
        with self._lock:
            subscription.active = False
            self._audience = tuple(one for one in self._audience if one is not subscription)

    def _tell(self) -> None:
        try:
            while (told := self._next()) is not None:
                event, audience = told
                for one in audience:
                    one.hear(event)
        except BaseException:
            # Ctrl-C in a listener: the next event is told by whoever emits it.
            with self._lock:
                self._telling = None
                self._told.notify_all()
            raise

    def _next(self) -> tuple[Event, tuple[_Subscription, ...]] | None:
        with self._lock:
            if self._untold:
                return self._untold.popleft()
            self._telling = None
            self._told.notify_all()
            return None

    def _write(self, event: Event) -> None:
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("a", encoding="utf-8", buffering=1)
                self._few = self._path.with_suffix(FEW).open("a", encoding="utf-8", buffering=1)
            line = json.dumps(event.to_json(), default=str) + "\n"
            self._file.write(line)
            if self._few is not None and not event.frequent:
                self._few.write(line)
        except OSError as error:
            # A full disk must not stop the flows: the log is history, the tables are the truth.
            log.warning("events.lost path=%s error=%s", self._path, error)


class _Subscription:
    """A listener, and whether its trouble was told of."""

    def __init__(self, listener: Listener) -> None:
        self.active = True
        self._listener = listener
        self._failed = False

    def hear(self, event: Event) -> None:
        if not self.active:
            return
        try:
            self._listener(event)
        except Exception as error:
            if not self._failed:
                log.warning("listener.failed listener=%r event=%s", self._listener, event.name, exc_info=error)
            self._failed = True
