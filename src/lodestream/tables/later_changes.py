"""What came and went in a table after a position in its history, oldest first. No JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lodestream.errors import SourceRewritten
from lodestream.tables.inspect import TableView
from lodestream.tables.row_changes import Changed, changed_rows
from lodestream.tables.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ChangePosition:
    """After a snapshot, or after the first `number` changes of it; no snapshot is the beginning.

    `of_all` says what was counted: all rows of the snapshot, because the one before it had expired, or what it changed;
    None is what would be counted now.
    """

    snapshot: int | None = None
    number: int | None = None
    of_all: bool | None = None


def reachable(view: TableView, position: ChangePosition) -> bool:
    """Whether everything after the position is still there: it lies in the history of `main`, or just before it."""
    if position.snapshot is None:
        return True
    history = list(view.ancestors(view.head()))
    if any(one.id == position.snapshot for one in history):
        return True
    return position.number is None and any(one.parent == position.snapshot for one in history)


def later_snapshots(view: TableView, position: ChangePosition) -> list[Snapshot]:
    """The snapshots with changes after a position, oldest first. One that we stand inside is the first of them."""
    later: list[Snapshot] = []
    for one in view.ancestors(view.head()):
        if one.id == position.snapshot:
            return [*([one] if position.number is not None else []), *reversed(later)]
        later.append(one)
        if (
            position.snapshot is not None
            and one.parent == position.snapshot
            and view.snapshot(position.snapshot) is None
        ):
            break  # the position itself has expired, and what came after it is all there
    return later[::-1]


def counts_all(view: TableView, snapshot: Snapshot, position: ChangePosition) -> bool:
    """Whether a snapshot after a position counts with all rows that it has: nothing is known of what was before it."""
    if snapshot.id == position.snapshot and position.of_all is not None:
        return position.of_all
    # Some tools forget the parent that they expire: then the snapshot looks like the first one.
    follows = position.snapshot is not None and snapshot.parent == position.snapshot
    return view.snapshot(snapshot.parent or 0) is None and not follows


def changes_in(view: TableView, snapshot: Snapshot, position: ChangePosition) -> Iterator[Changed]:
    """The changes of one of the snapshots that come after a position."""
    follows = position.snapshot is not None and not counts_all(view, snapshot, position)
    if follows and view.snapshot(snapshot.parent or 0) is None and snapshot.operation not in ("append", "replace"):
        raise SourceRewritten(
            f"{view.name} can no longer be compared with snapshot {snapshot.parent}",
            why=f"snapshot {snapshot.id} replaced rows in place, and the one before it has expired",
            fix="begin again without --since, or keep snapshots longer than their readers lag behind",
        )
    skip = position.number or 0 if snapshot.id == position.snapshot else 0
    return changed_rows(view, snapshot, skip, follows=follows)
