"""Named instants at which a test may make a process die, wait, raise or lose an answer.

`LODE_FAILPOINTS="publish.before@silver.trips#3=kill"` kills the process the third time that point is reached for
that table. Without the variable a point costs one dictionary lookup. Actions: `kill`, `raise`, `lose` (the answer),
`sleep:SECONDS`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from lodestream.errors import CatalogUnavailable, OutcomeUnknown

Action = Callable[[], None]


@dataclass(slots=True)
class _Armed:
    action: Action
    countdown: int


_armed: dict[tuple[str, str], _Armed] = {}
_lock = threading.Lock()


def reach(point: str, table: str) -> None:
    """Called by the protocol at the named instant."""
    if not _armed:
        return
    with _lock:
        armed = _armed.get((point, table)) or _armed.get((point, "*"))
        if armed is None:
            return
        armed.countdown -= 1
        due = armed.countdown == 0
    if due:
        armed.action()


def arm(point: str, table: str, action: Action, *, nth: int = 1) -> None:
    with _lock:
        _armed[point, table] = _Armed(action, nth)


def disarm() -> None:
    with _lock:
        _armed.clear()


def arm_from(text: str) -> None:
    for entry in filter(None, text.split(",")):
        where, _, action = entry.partition("=")
        where, _, nth = where.partition("#")
        point, _, table = where.partition("@")
        arm(point, table or "*", _parse(action), nth=int(nth or 1))


def _parse(action: str) -> Action:
    name, _, argument = action.partition(":")
    if name == "kill":
        return lambda: os.kill(os.getpid(), signal.SIGKILL)
    if name == "sleep":
        return lambda: time.sleep(float(argument))
    if name == "raise":
        return _raise_unavailable
    if name == "lose":
        return _lose_answer
    raise ValueError(f"unknown failpoint action {action!r}: use kill, raise, lose or sleep:SECONDS")


def _raise_unavailable() -> None:
    raise CatalogUnavailable("injected: the catalog does not answer")


def _lose_answer() -> None:
    raise OutcomeUnknown("injected: the answer of the commit was lost")


arm_from(os.environ.get("LODE_FAILPOINTS", ""))
