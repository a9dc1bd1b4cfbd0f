"""Wake a flow when anyone has committed to one of its inputs: a replay, a second driver, a stranger."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

# Seconds between looks: all tables in one query, or table by table where the catalog has none.
LOOK_SECONDS = 1.0
_ASK_SECONDS = 5.0
# Longest time that a change which may be our own is left to the wake-up that follows it.
_PATIENCE = 5.0


class Heads(Protocol):
    def look(self) -> dict[str, str] | None: ...


class Keeper(Protocol):
    """What is asked of the flow that keeps an input in this run."""

    committed: float

    @property
    def state(self) -> str: ...

    def looked_since(self, moment: float) -> bool: ...


class InputWatch:
    """`inputs` says which tables a flow reads, `keepers` which flow of this run keeps a table.

    A flow's own commit wakes its readers by itself. So a change is left alone while the keeper of that table is at work
    or has just published, and told when the table moved without it.
    """

    def __init__(
        self,
        heads: Heads | None,
        inputs: Mapping[str, Sequence[str]],
        keepers: Mapping[str, Keeper],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._heads = heads
        self._inputs = inputs
        self._keepers = keepers
        self._clock = clock
        self._before: dict[str, str] | None = None
        self._moved: dict[str, float] = {}
        self._looked = -math.inf
        self._blind = False

    def look(self) -> list[str]:
        """The flows that must be woken. The first look is the baseline: take it before the flows look themselves."""
        now = self._clock()
        return self._idle(now) if self._heads is None else self._readers(self._heads, now)

    def _idle(self, now: float) -> list[str]:
        keepers = ((name, self._keepers.get(name)) for name in self._inputs)
        return [name for name, one in keepers if one is not None and not one.looked_since(now - _ASK_SECONDS)]

    def _readers(self, heads: Heads, now: float) -> list[str]:
        found = heads.look()
        if found is None:
            self._blind = self._before is None
            return []
        before, self._before = self._before, found
        since, self._looked = self._looked, now
        if before is None:
            # What was committed while nothing could be seen may have been missed.
            return list(self._inputs) if self._blind else []
        for name in {name for names in self._inputs.values() for name in names}:
            if found.get(name) != before.get(name):
                self._moved.setdefault(name, now)
        foreign = {name for name, seen in self._moved.items() if now - seen > _PATIENCE or not self._ours(name, since)}
        for name in foreign:
            del self._moved[name]
        return [flow for flow, names in self._inputs.items() if foreign.intersection(names)]

    def _ours(self, name: str, since: float) -> bool:
        keeper = self._keepers.get(name)
        return keeper is not None and (keeper.state == "running" or keeper.committed >= since)
