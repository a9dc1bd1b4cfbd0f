"""A table in memory that behaves as an Iceberg catalog does, to run the protocol without a JVM."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lodestream.errors import CatalogUnavailable
from lodestream.tables.notes import CREATED
from lodestream.tables.snapshot import Snapshot
from lodestream.tables.store import MAIN, Refused, TableStore

Row = Any
# Iceberg tries a commit again on fresh metadata this often before it gives up.
_RETRIES = 10


class _Conflict(CatalogUnavailable):
    """The table changed between the read and the swap of a commit."""


class MemoryTable:
    """What a catalog holds of one table. Every commit makes a new version and names the version it read."""

    def __init__(self, name: str = "bronze.events") -> None:
        self.name = name
        self.version = 0
        self.moves = 0
        self.refs: dict[str, int] = {}
        self.snapshots: dict[int, Snapshot] = {}
        self._ids = itertools.count(1)
        # Data outlives the snapshot that added it: expiry forgets history, not rows.
        self._parents: dict[int, int | None] = {}
        self._added: dict[int, tuple[Row, ...]] = {}
        self._removed: dict[int, frozenset[Row]] = {}
        self.set(MAIN, self.add(None, "append", CREATED))

    def add(
        self,
        parent: int | None,
        operation: str,
        summary: Mapping[str, str],
        rows: Iterable[Row] = (),
        removed: Iterable[Row] = (),
    ) -> int:
        """A snapshot that no reference reaches yet."""
        number = next(self._ids)
        self._parents[number] = parent
        self._added[number] = tuple(rows)
        self._removed[number] = frozenset(removed)
        counts = {"added-records": len(self._added[number]), "total-records": len(self.rows(number))}
        texts = {key: str(value) for key, value in counts.items()}
        self.snapshots[number] = Snapshot(number, parent, operation, number, {**summary, **texts})
        return number

    def set(self, ref: str, snapshot_id: int) -> None:
        self.version += 1
        self.moves += ref == MAIN
        self.refs[ref] = snapshot_id

    def drop(self, ref: str) -> None:
        self.version += 1
        self.refs.pop(ref, None)

    def expire(self, snapshot_ids: Iterable[int]) -> None:
        self.version += 1
        for number in snapshot_ids:
            self.snapshots.pop(number, None)

    def chain(self, at: int | None) -> Iterator[int]:
        """Snapshot ids from `at` to the first one, expired ones included."""
        while at is not None:
            yield at
            at = self._parents[at]

    def rows(self, at: int) -> list[Row]:
        """What a reader of that snapshot sees."""
        seen: list[Row] = []
        for number in reversed(list(self.chain(at))):
            seen = [row for row in seen if row not in self._removed[number]] + list(self._added[number])
        return seen

    def added(self, at: int) -> tuple[Row, ...]:
        return self._added[at]


class MemoryStore(TableStore):
    """One client of a `MemoryTable`.

    `gate` is called before each step of each exchange with the catalog; it may raise what a catalog may raise, or let
    another client go first. A step named `....answer` lies after the change: raising there loses the answer.
    """

    def __init__(self, table: MemoryTable, gate: Callable[[str], None] = lambda _step: None) -> None:
        self.name = table.name
        self.table = table
        self._gate = gate
        self._known: dict[int, Snapshot] = {}
        self._load()

    def refresh(self) -> None:
        self._gate("refresh")
        self._load()

    def ref(self, name: str) -> Snapshot | None:
        return self._known.get(self._refs[name]) if name in self._refs else None

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        return self._known[snapshot_id] if snapshot_id in self._there else None

    def recalled(self, snapshot_id: int) -> Snapshot | None:
        return self._known.get(snapshot_id)

    def branches(self) -> list[str]:
        return [name for name in self._refs if name != MAIN]

    def point(self, branch: str, snapshot_id: int) -> None:
        def move() -> None:
            if snapshot_id not in self.table.snapshots:
                raise CatalogUnavailable(f"snapshot {snapshot_id} has expired")
            self.table.set(branch, snapshot_id)

        self._commit("point", move)

    def drop(self, branch: str) -> None:
        self._commit("drop", lambda: self.table.drop(branch))

    def main_version(self) -> str:
        return self._main_version

    def fast_forward(self, branch: str, upto: int, main_version: str) -> None:
        read = self._read("fast_forward")
        if (
            self._main_version != main_version
            or self._refs.get(branch) != upto
            or self._refs[MAIN] not in self.table.chain(upto)
        ):
            raise Refused(f"main of {self.name} moved")
        try:
            self._swap("fast_forward", read, lambda: self.table.set(MAIN, upto))
        except _Conflict as conflict:
            raise Refused(conflict.what) from conflict

    def rollback(self, snapshot_id: int) -> None:
        self._commit("rollback", lambda: self.table.set(MAIN, snapshot_id))

    def commit_empty(self, branch: str, properties: Mapping[str, str]) -> None:
        self.append(branch, properties)

    def append(
        self,
        branch: str,
        properties: Mapping[str, str],
        rows: Iterable[Row] = (),
        *,
        operation: str = "append",
        removed: Iterable[Row] = (),
    ) -> None:
        """Like Iceberg's: a branch that is missing begins at `main`, and a lost race is tried again on fresh state."""

        def write() -> None:
            parent = self._refs.get(branch, self._refs[MAIN])
            self.table.set(branch, self.table.add(parent, operation, properties, rows, removed))

        for _ in range(_RETRIES):
            try:
                self._commit("append", write)
                return
            except _Conflict:
                continue
        raise CatalogUnavailable(f"{self.name} kept moving")

    def _commit(self, step: str, change: Callable[[], None]) -> None:
        self._swap(step, self._read(step), change)

    def _read(self, step: str) -> int:
        self._gate(f"{step}.read")
        self._load()
        return self.table.version

    def _swap(self, step: str, read: int, change: Callable[[], None]) -> None:
        self._gate(f"{step}.swap")
        if read != self.table.version:
            raise _Conflict(f"{self.name} changed since it was read")
        change()
        self._gate(f"{step}.answer")
        self._load()

    def _load(self) -> None:
        self._refs = dict(self.table.refs)
        self._main_version = f"{self.table.refs[MAIN]}@{self.table.moves}"
        self._there = frozenset(self.table.snapshots)
        # Like a client that has seen them: snapshots expired later can be recalled.
        self._known.update(self.table.snapshots)
