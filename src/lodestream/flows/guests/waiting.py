"""The run that keeps a table lets a guest go first: one that needs two seconds would never win against one a second.

A guest puts up a sign, a branch of its own, while it publishes. The keeper sees it before a batch, waits until the
guest has published or its patience ends, and goes on. A sign that stays where it is belongs to a guest that was killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from lodestream.flows.parts import Gate
from lodestream.tables.publish import BRANCH_PREFIX
from lodestream.tables.store import TableStore

SIGN = BRANCH_PREFIX + "guest_"
_LOOK = 0.1
# Seconds that one batch waits at most, and after which a sign that has not moved is that of nobody.
_MOST, _DEAD = 5.0, 20.0


def ask_to_wait(store: TableStore, run: str) -> None:
    """Before each attempt of a guest: the sign moves along with the table, which shows that its guest lives."""
    head = store.head()
    if head is not None:
        store.point(SIGN + run, head.id)


def stop_asking(store: TableStore, run: str) -> None:
    store.drop(SIGN + run)


class GuestGate(Gate):
    """How long a keeper waits for guests."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._first_seen: dict[tuple[str, int], float] = {}
        self._usual = 0.0  # seconds that a batch takes

    def took(self, seconds: float) -> None:
        self._usual = seconds

    def let_pass(self, store: TableStore) -> bool:
        version, until = store.main_version(), self._clock() + min(_MOST, 1.0 + 2 * self._usual)
        while self._guests(store) and self._clock() < until:
            self._sleep(_LOOK)
            store.refresh()
            if store.main_version() != version:
                return True
        return False

    def _guests(self, store: TableStore) -> bool:
        now = self._clock()
        at = {(name, found.id) for name in store.branches() if name.startswith(SIGN) and (found := store.ref(name))}
        self._first_seen = {sign: self._first_seen.get(sign, now) for sign in at}
        return any(now - seen < _DEAD for seen in self._first_seen.values())
