"""The seam between the publish protocol and a catalog.

`publish.py` drives these calls and nothing else, so the protocol can be run against a fake catalog
through thousands of interleavings (`lodestream.testing.MemoryStore`) and against Iceberg (`iceberg.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping

from lodestream.errors import LodeError, NotOurTable
from lodestream.tables.snapshot import Snapshot, Stamp

MAIN = "main"


class Refused(LodeError):
    """The catalog refused a fast-forward: `main` is no longer an ancestor of the branch."""


class TableStore(ABC):
    """One table's references and snapshots.

    Every method may raise `CatalogUnavailable` (nothing happened, try again). Only `fast_forward` may raise
    `Refused` (main moved) or `OutcomeUnknown` (sent, answer lost): the caller resolves that by reloading.
    """

    name: str

    @abstractmethod
    def refresh(self) -> None:
        """Called before every decision: later calls answer from this state of the table."""

    @abstractmethod
    def ref(self, name: str) -> Snapshot | None:
        """The snapshot a branch or tag points at, or None."""

    @abstractmethod
    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """A snapshot by id, or None when the table does not have it: it has expired, or never existed."""

    @abstractmethod
    def branches(self) -> list[str]:
        """All branches but `main`."""

    @abstractmethod
    def point(self, branch: str, snapshot_id: int) -> None:
        """Create the branch at the snapshot, or move it there."""

    @abstractmethod
    def drop(self, branch: str) -> None:
        """Forget a branch; its snapshots become expirable. Dropping a missing branch is no error."""

    @abstractmethod
    def main_version(self) -> str:
        """Where `main` is, and since when: another one after every move, also after a move there and back."""

    @abstractmethod
    def fast_forward(self, branch: str, upto: int, main_version: str) -> None:
        """Move `main` to the branch, if it is still at `main_version`: the compare-and-swap of the one rule.

        Refused when `main` has moved, also to an older ancestor: that is a rollback, not to be undone. Refused when
        the branch is not at `upto`: a write of an earlier attempt came late, and must not be published along.
        """

    @abstractmethod
    def commit_empty(self, branch: str, properties: Mapping[str, str]) -> None:
        """A snapshot without rows on the branch: it moves positions, or records a decision."""

    @abstractmethod
    def rollback(self, snapshot_id: int) -> None:
        """Move `main` back to one of its ancestors."""

    def head(self) -> Snapshot | None:
        return self.ref(MAIN)

    @abstractmethod
    def recalled(self, snapshot_id: int) -> Snapshot | None:
        """A snapshot by id that the table has, or that this client has seen in it before it expired."""

    def ancestors(self, start: Snapshot | None) -> Iterator[Snapshot]:
        """`start` and everything before it, newest first, as far as the table keeps its history."""
        return _back(start, self.snapshot)

    def remembered(self, start: Snapshot | None) -> Iterator[Snapshot]:
        """The same, over expired snapshots that we have seen: what we once built on stays known, readable or not."""
        return _back(start, self.recalled)


def _back(start: Snapshot | None, find: Callable[[int], Snapshot | None]) -> Iterator[Snapshot]:
    current = start
    while current is not None:
        yield current
        current = find(current.parent) if current.parent is not None else None


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
