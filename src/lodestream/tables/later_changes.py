"""What came and went in a table after a place in its history, oldest first. No JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lodestream.errors import SourceRewritten
from lodestream.tables.inspect import TableView
from lodestream.tables.row_changes import Changed, changed_rows
from lodestream.tables.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Place:
    """After a snapshot, or after the first `number` changes of it; no snapshot is the beginning.

    `of_all` says what was counted: all rows of the snapshot, because the one before it had expired, or what it changed;
    None is what would be counted now.
    """

    snapshot: int | None = None
    number: int | None = None
    of_all: bool | None = None


def reachable(view: TableView, place: Place) -> bool:
    """Whether everything after the place is still there: it lies in the history of `main`, or just before it."""
    if place.snapshot is None:
        return True
    history = list(view.ancestors(view.head()))
    if any(one.id == place.snapshot for one in history):
        return True
    return place.number is None and any(one.parent == place.snapshot for one in history)


def later_snapshots(view: TableView, place: Place) -> list[Snapshot]:
    """The snapshots with changes after a place, oldest first. One that we stand inside is the first of them."""
    later: list[Snapshot] = []
    for one in view.ancestors(view.head()):
        if one.id == place.snapshot:
            return [*([one] if place.number is not None else []), *reversed(later)]
        later.append(one)
        if place.snapshot is not None and one.parent == place.snapshot and view.snapshot(place.snapshot) is None:
            break  # the place itself has expired, and what came after it is all there
    return later[::-1]


def counts_all(view: TableView, snapshot: Snapshot, place: Place) -> bool:
    """Whether a snapshot after a place counts with all rows that it has: nothing is known of what was before it."""
    if snapshot.id == place.snapshot and place.of_all is not None:
        return place.of_all
    return view.snapshot(snapshot.parent or 0) is None and snapshot.parent != place.snapshot


def changes_in(view: TableView, snapshot: Snapshot, place: Place) -> Iterator[Changed]:
    """The changes of one of the snapshots that come after a place."""
    follows = place.snapshot is not None and not counts_all(view, snapshot, place)
    if follows and view.snapshot(snapshot.parent or 0) is None and snapshot.operation not in ("append", "replace"):
        raise SourceRewritten(
            f"{view.name} can no longer be compared with snapshot {snapshot.parent}",
            why=f"snapshot {snapshot.id} replaced rows in place, and the one before it has expired",
            fix="begin again without --since, or keep snapshots longer than their readers lag behind",
        )
    skip = place.number or 0 if snapshot.id == place.snapshot else 0
    return changed_rows(view, snapshot, skip, follows=follows)
