"""How many rows the next batch may have: learned from how long the last ones took, and how large their rows are."""

from __future__ import annotations

_FIRST = 20_000
_LEAST = 1_000
# Of files, which are compressed. A batch passes through memory row group by row group, several flows at a time.
MOST_BYTES = 128 * 1024 * 1024


class Sizer:
    """Grows while full batches finish early, shrinks in proportion when one takes too long, never above the cap.

    Rows that are large make batches with fewer of them: of messages of a megabyte each there are a hundred in one.
    """

    def __init__(self, target: float, cap: int, most_bytes: int = MOST_BYTES) -> None:
        self._target = target
        self._cap = cap
        self._most_bytes = most_bytes
        self._rows = min(_FIRST, cap)
        self._row_bytes = 0.0

    @property
    def rows(self) -> int:
        if not self._row_bytes:
            return self._rows
        return max(1, min(self._rows, int(self._most_bytes / self._row_bytes)))

    def learn(self, rows: int, seconds: float, row_bytes: float = 0.0) -> None:
        """`row_bytes` is what a row of the batch took in its files."""
        full = rows >= 0.8 * self.rows
        # Large rows are believed at once, small ones by and by: the next batch may have large ones again.
        self._row_bytes = max(row_bytes, (self._row_bytes + row_bytes) / 2)
        if seconds > 1.3 * self._target:
            # The fixed cost of a batch is paid at any size, so one slow batch never shrinks more than half.
            wanted = int(self._rows * max(0.5, self._target / seconds))
            self._rows = max(min(_LEAST, self._cap), min(wanted, self._rows))
        elif full and seconds < 0.7 * self._target:
            self._rows = min(self._cap, self._rows * 2)
