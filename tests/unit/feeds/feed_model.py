"""What keyed tables mean, in plain Python: the oracle that the Spark flows are held against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """One event: the row it brings, where it stands in the sequence, and where the broker put it."""

    key: str | None
    row: tuple[Any, ...]
    at: int | None
    partition: int
    offset: int
    gone: bool = False

    @property
    def place(self) -> tuple[int, int, int]:
        """The total order of the changes of a key: the sequence, then the broker's position."""
        if self.at is None:
            raise ValueError("a change without its sequence is a dead letter")
        return (self.at, self.partition, self.offset)

    @property
    def takes_part(self) -> bool:
        return self.key is not None and self.at is not None


def by_key(changes: Iterable[Change]) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {}
    for change in changes:
        if change.takes_part:
            found.setdefault(str(change.key), []).append(change)
    return {key: sorted(ones, key=lambda one: one.place) for key, ones in found.items()}


def upserted(changes: Iterable[Change]) -> dict[str, tuple[Any, ...]]:
    """The rows of a keyed table: per key the last change, unless it deletes. No order of arrival matters."""
    last = {key: ordered[-1] for key, ordered in by_key(changes).items()}
    return {key: one.row for key, one in last.items() if not one.gone}


def versions(changes: Iterable[Change]) -> set[tuple[Any, ...]]:
    """(key, row, valid_from, valid_to, is_current): each moment of a key is a border, the last change there counts."""
    found: set[tuple[Any, ...]] = set()
    for key, ordered in by_key(changes).items():
        moments = {one.place[0]: one for one in ordered}  # a later place at the same moment replaces
        borders = sorted(moments)
        for moment, following in zip(borders, [*borders[1:], None], strict=True):
            if not moments[moment].gone:
                found.add((key, moments[moment].row, moment, following, following is None))
    return found


def feed_rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    """(key, row, weight): what went and what came between two states; nothing for what is the same."""
    gone = {(key, row, -1) for key, row in before.items() if after.get(key) != row}
    return gone | {(key, row, 1) for key, row in after.items() if before.get(key) != row}


def slices(changes: Sequence[Change], sizes: Sequence[int]) -> list[list[Change]]:
    found, start = [], 0
    for size in sizes:
        found.append(list(changes[start : start + size]))
        start += size
    return [*found, list(changes[start:])]
