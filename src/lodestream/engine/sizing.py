"""How many rows the next batch may have: learned from how long the last ones took."""

from __future__ import annotations

_FIRST = 20_000
_LEAST = 1_000


class Sizer:
    """Grows while full batches finish early, shrinks in proportion when one takes too long, never above the cap."""

    def __init__(self, target: float, cap: int) -> None:
        self._target = target
        self._cap = cap
        self._rows = min(_FIRST, cap)

    @property
    def rows(self) -> int:
        return self._rows

    def learn(self, rows: int, seconds: float) -> None:
        full = rows >= 0.8 * self._rows
        if seconds > 1.3 * self._target:
            # The fixed cost of a batch is paid at any size, so one slow batch never shrinks more than half.
            wanted = int(self._rows * max(0.5, self._target / seconds))
            self._rows = max(min(_LEAST, self._cap), min(wanted, self._rows))
        elif full and seconds < 0.7 * self._target:
            self._rows = min(self._cap, self._rows * 2)
