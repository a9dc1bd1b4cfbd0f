"""Which dead letters belong to a table: decided by the table's own history, never by time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from lodestream.tables.notes import ATTEMPT, BASE
from lodestream.tables.snapshot import Snapshot, Stamp

# In a letter: how many rows of the same event entered the table with its batch; null when keys tell rows apart, and in
# letters from before there was such a column.
BESIDE = "beside"


class History(Protocol):
    """What is asked of a table: a store that a run has open, or a view of the catalog."""

    def head(self) -> Snapshot | None: ...
    def main_version(self) -> str: ...
    def ancestors(self, start: Snapshot | None) -> Iterator[Snapshot]: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    orphans: tuple[str, ...] = ()
    """Attempts that can no longer be published."""
    open: tuple[str, ...] = ()
    """Attempts that their run, if it lives, may still publish."""
    beyond: int | None = None
    """Set when the history of the letters has expired: those of later batches than this, unless open, are orphans."""
    settled: int | None = None
    """The newest dead-letter snapshot up to which everything is decided."""


def judge_letters(dead: History, main: History, own: str, settled: str) -> Verdict:
    """Hold the letters against the table's history; `own` and `settled` are the notes in its stamps."""
    orphans: list[str] = []
    pending: list[str] = []
    version, head = main.main_version(), dead.head()
    mark = head.id if head else None
    recent, complete = _since(dead, _last_note(main, settled))
    for snapshot in recent:
        letter = snapshot.stamp
        if letter is None or ATTEMPT not in letter.notes:
            continue
        if letter.notes[BASE] == version:
            pending.append(letter.notes[ATTEMPT])
            mark = snapshot.parent
        elif not _published(letter, main, own, complete):
            orphans.append(letter.notes[ATTEMPT])
    beyond = None if complete else max((stamp.batch for stamp in islice(_stamps(main), 1)), default=0)
    return Verdict(tuple(orphans), tuple(pending), beyond, mark)


def _last_note(main: History, key: str) -> str | None:
    stamp = next(_stamps(main), None)
    return stamp.notes.get(key) if stamp else None


def _stamps(main: History) -> Iterator[Stamp]:
    return (one.stamp for one in main.ancestors(main.head()) if one.stamp is not None)


def _since(dead: History, settled: str | None) -> tuple[list[Snapshot], bool]:
    """Newest first, down to what was settled; False when that has expired and older ones may be among them."""
    mark = None if settled is None else int(settled)
    found: list[Snapshot] = []
    for snapshot in dead.ancestors(dead.head()):
        if mark is not None and snapshot.id == mark:
            return found, True
        found.append(snapshot)
    # Reaches the mark, or the very beginning, even when that snapshot itself has expired.
    return found, not found or found[-1].parent == mark


def _published(letter: Stamp, main: History, own: str, complete: bool) -> bool:
    for stamp in _stamps(main):
        if stamp.notes.get(own) == letter.notes[ATTEMPT]:
            return True
        if stamp.batch <= letter.batch:
            return False
    # The history of that batch has expired. Letters that came after it was settled are late; older ones stay.
    return not complete
