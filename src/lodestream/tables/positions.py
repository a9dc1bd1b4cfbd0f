"""Where a table is: the nearest stamped ancestor of its head."""

from __future__ import annotations

from lodestream.errors import NotOurTable
from lodestream.tables.snapshot import Snapshot, Stamp
from lodestream.tables.store import TableStore


def last_stamp(store: TableStore) -> Stamp | None:
    """The stamp that `main` stands on, or None for a table that no batch has reached yet.

    Compaction and other maintenance put unstamped snapshots on top, so the walk goes back until it finds one.
    """
    snapshot = last_stamped(store)
    return snapshot.stamp if snapshot else None


def last_stamped(store: TableStore) -> Snapshot | None:
    head = store.head()
    for snapshot in store.ancestors(head):
        if snapshot.stamp is not None:
            return snapshot
    if head is not None and head.total_rows > 0:
        raise NotOurTable(
            f"{store.name} holds {head.total_rows:,} rows and no positions",
            why="no snapshot of its history says which input it contains, so continuing could lose or double rows",
            fix=f"drop or rename the table, or adopt it as it is with `lode run --adopt {store.name}`",
        )
    return None


def last_kept(store: TableStore) -> Snapshot | None:
    """The last batch of a run that keeps the table; guests on top of it are no other writer."""
    stamped = last_stamped(store)
    for snapshot in store.ancestors(stamped):
        if snapshot.stamp is not None and not snapshot.stamp.guest:
            return snapshot
    return None


def contains(store: TableStore, snapshot_id: int) -> bool:
    """Whether `main` reaches the snapshot: the only proof that it was published."""
    return any(snapshot.id == snapshot_id for snapshot in store.ancestors(store.head()))
