"""Tables as input: the rows appended between two snapshots, or the whole table at one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import abs as magnitude
from pyspark.sql.functions import array_repeat, col, explode, lit, signum
from pyspark.sql.functions import sum as total

from lodestream.errors import SourceRecreated, SourceRewritten, TableGone
from lodestream.names import WEIGHT
from lodestream.pipeline.gold.pieces import quoted
from lodestream.sources.source import Position, Source
from lodestream.tables.distinct import counted
from lodestream.tables.hidden import shown
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Snapshot, live_rows

_HARMLESS = ("append", "replace")
# A row that takes more in its file counts as several when a batch is cut: ten thousand of 1 MB each are no small batch.
_ROW_BYTES = 1024


class TableInput(Source):
    """Position: `{"uuid": table uuid, "snapshot": id}`; snapshot None is before everything."""

    # Whether a change can take rows away, so that weights of -1 come.
    retracts: bool = True

    def __init__(self, lake: Lake, name: str) -> None:
        self.name = name
        self._lake = lake
        self._store: IcebergStore | None = None

    def latest(self) -> Position | None:
        store = self._open()
        head = store.head() if store else None
        return None if store is None or head is None else {"uuid": store.uuid, "snapshot": head.id}

    def start(self, latest: Position) -> Position:
        return {"uuid": latest["uuid"], "snapshot": None}

    def accept(self, since: Position, latest: Position) -> Position:
        return latest

    def confirm(self, to: Position) -> None:
        return  # a snapshot is what it was, however the table has moved since

    @abstractmethod
    def changes(self, since: Position, to: Position) -> DataFrame:
        """The rows that came (`_weight` 1) and went (`_weight` -1) after `since` up to `to`."""

    def changes_sql(self, since: Position, to: Position, hint: str) -> str | None:
        """`changes` as a query with the hint, or None: one statement is analysed once, a view on its own as well."""
        return None

    def comparable(self, since: Position, to: Position) -> bool:
        """Whether `changes` can still be told; otherwise a reader recomputes its table from `now`."""
        return True

    def now(self, to: Position) -> DataFrame:
        """The rows as of a position, as a query sees them: without the hidden state of a Gold table."""
        return shown(self._lake.whole(self.name, to["snapshot"]))

    def shape(self, to: Position) -> object:
        """Changes whenever the columns that `now` gives may have changed."""
        snapshot = self._loaded().snapshot(to["snapshot"]) if to["snapshot"] is not None else None
        return (to["uuid"], snapshot.schema_id if snapshot else None)

    def identities(self, to: Position) -> dict[str, int]:
        """Iceberg's own number of each column: a column that is dropped and added again gets another."""
        store = self._loaded()
        snapshot = store.snapshot(to["snapshot"]) if to["snapshot"] is not None else None
        return store.field_ids(snapshot.schema_id if snapshot else None)

    def rows_at(self, to: Position) -> int:
        """About how many rows `now` gives."""
        snapshot = self._loaded().snapshot(to["snapshot"])
        return snapshot.total_rows if snapshot else 0

    def gone(self, since: Position) -> SourceRecreated:
        return _dropped(self.name)

    def asof(self, to: Position) -> float | None:
        if to["snapshot"] is None:  # nothing of it was read: so a table that is adopted begins
            return None
        store = self._loaded()
        for snapshot in store.ancestors(store.snapshot(to["snapshot"])):
            if snapshot.stamp is not None:
                return snapshot.stamp.asof
        return None

    def _open(self) -> IcebergStore | None:
        if self._store is None:
            if not self._lake.exists(self.name):
                return None
            self._store = self._lake.store(self.name)
        else:
            try:
                self._store.refresh()
            except TableGone:
                self._store = None
        return self._store

    def _loaded(self) -> IcebergStore:
        store = self._store or self._open()
        if store is None:
            raise _dropped(self.name)
        return store

    def _same_table(self, since: Position, latest: Position) -> None:
        if since["uuid"] != latest["uuid"]:
            raise SourceRecreated(
                f"table {self.name} was dropped and created again",
                why=f"we have read table {since['uuid']}, the catalog now has {latest['uuid']}",
                fix="rebuild the reading table, or `lode run --accept-gap TABLE` to go on with the new one's next rows",
            )


class AppendedRows(TableInput):
    """The rows that were appended; compaction changes nothing, anything else stops the flow."""

    retracts = False
    appends = True

    def check(self, since: Position, latest: Position) -> None:
        self._same_table(since, latest)
        if since["snapshot"] is not None:  # otherwise the rows are read as they are, whatever they were before
            self.untouched(since, latest)

    def untouched(self, since: Position, latest: Position) -> None:
        """Raise when rows were changed in place after `since`."""
        for snapshot in self._between(since["snapshot"], latest["snapshot"]):
            if snapshot.operation not in _HARMLESS:
                raise SourceRewritten(
                    f"table {self.name} was changed in place by snapshot {snapshot.id} ({snapshot.operation})",
                    why="rows were overwritten or deleted; readers of appended rows would never learn which",
                    fix="rebuild the reading table, or `lode run --accept-gap TABLE` to go on after that snapshot",
                )

    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        """Whole snapshots only, oldest first: a published batch is never split. Large rows count for several."""
        between = self._between(since["snapshot"], latest["snapshot"])
        chosen, total = since["snapshot"], 0
        if chosen is None and (base := _base(between)):
            chosen, total = between[base - 1].id, self._rows_in(between[base - 1].id)
            between = between[base:]
        for snapshot in between:
            added = _weight(snapshot) if snapshot.operation == "append" else 0
            if total > 0 and total + added > rows:
                break
            chosen, total = snapshot.id, total + added
        return {"uuid": latest["uuid"], "snapshot": chosen}

    def pending(self, since: Position, to: Position) -> int:
        if since["snapshot"] is None:
            return self._rows_in(to["snapshot"]) if to["snapshot"] is not None else 0
        between = self._between(since["snapshot"], to["snapshot"])
        return sum(snapshot.added_rows for snapshot in between if snapshot.operation == "append")

    def read(self, since: Position, to: Position) -> DataFrame:
        if since["snapshot"] is None:
            return self._lake.whole(self.name, to["snapshot"])
        if since["snapshot"] == to["snapshot"]:  # another input has news
            return self._lake.whole(self.name).limit(0)
        return self._lake.appended(self.name, since["snapshot"], to["snapshot"])

    def changes(self, since: Position, to: Position) -> DataFrame:
        return self.read(since, to).withColumn(WEIGHT, lit(1))

    def changes_sql(self, since: Position, to: Position, hint: str) -> str | None:
        if since["snapshot"] is None:
            return None
        rows = self._lake.appended_sql(self.name, since["snapshot"], to["snapshot"])
        return f"SELECT {hint} *, 1 AS {WEIGHT} FROM {rows}"  # noqa: S608 (names and numbers of our own)

    def _rows_in(self, snapshot_id: int) -> int:
        """All rows as of a snapshot. Of its history only a part may be left, so that adding up says nothing."""
        store = self._loaded()
        snapshot = store.snapshot(snapshot_id)
        found = live_rows(store.ancestors(snapshot))
        return found if found is not None else snapshot.live_rows if snapshot else 0

    def _between(self, after: int | None, upto: int) -> list[Snapshot]:
        """Oldest first. A start that the walk does not meet was rolled back or expired."""
        store = self._loaded()
        found: list[Snapshot] = []
        for snapshot in store.ancestors(store.snapshot(upto)):
            if snapshot.id == after:
                return found[::-1]
            found.append(snapshot)
            if after is not None and snapshot.parent == after:
                return found[::-1]  # our position itself may have expired: what came after it is all there
        if after is None:
            return found[::-1]
        raise _not_reached(self.name, after, store.snapshot(after) is not None)


class WholeTable(TableInput):
    """All rows of the table at one snapshot: reference data, Gold, and inputs of a full refresh.

    What changed is found by comparing two snapshots: such tables are replaced in place, and mostly small.
    """

    def check(self, since: Position, latest: Position) -> None:
        """A whole read does not build on what was read before, so nothing can break it."""

    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        return latest

    def pending(self, since: Position, to: Position) -> int:
        if since == to:
            return 0
        snapshot = self._loaded().snapshot(to["snapshot"])
        return max(1, snapshot.total_rows) if snapshot else 1

    def read(self, since: Position, to: Position) -> DataFrame:
        return self._lake.whole(self.name, to["snapshot"])

    def changes(self, since: Position, to: Position) -> DataFrame:
        after = self.now(to)
        if since["snapshot"] is None:
            return after.withColumn(WEIGHT, lit(1))
        both = after.withColumn(WEIGHT, lit(1)).unionAll(self.now(since).withColumn(WEIGHT, lit(-1)))
        columns = [col(quoted(name)) for name in after.columns]
        net = counted(both, after.columns, total(WEIGHT).alias(WEIGHT)).where(col(WEIGHT) != 0)
        # One row per copy: whoever adds up changes expects weights of 1 and -1 only.
        copies = array_repeat(signum(WEIGHT).cast("int"), magnitude(col(WEIGHT)).cast("int"))
        return net.select(*columns, explode(copies).alias(WEIGHT))

    def comparable(self, since: Position, to: Position) -> bool:
        if since["uuid"] != to["uuid"]:
            return False
        if since["snapshot"] is None:
            return True
        if self._loaded().snapshot(since["snapshot"]) is None:
            return False  # expired
        return self.now(since).schema == self.now(to).schema


def _weight(snapshot: Snapshot) -> int:
    """The rows that it added; at least one for each so many bytes of files."""
    return max(snapshot.added_rows, int(snapshot.summary.get("added-files-size", "0")) // _ROW_BYTES)


def _base(history: Sequence[Snapshot]) -> int:
    """How many snapshots at the beginning of a history can only be read together: as the rows are after them.

    Of those before its first one nothing is left, and what was changed in place shows in no rows that were appended.
    """
    changed = [number for number, one in enumerate(history, start=1) if one.operation not in _HARMLESS]
    cut_off = bool(history) and history[0].parent is not None
    return max([*changed, int(cut_off)])


def _not_reached(name: str, after: int, exists: bool) -> SourceRewritten:
    if exists:
        what, why = "was rolled back", f"snapshot {after}, which we have read, is no longer part of its history"
    else:
        what, why = "has lost our position", f"snapshot {after}, which we have read, has expired"
    return SourceRewritten(
        f"table {name} {what}",
        why=why,
        fix="rebuild the reading table, or `lode run --accept-gap TABLE` to go on with the next rows",
    )


def _dropped(name: str) -> SourceRecreated:
    return SourceRecreated(f"table {name} is gone", why="it was dropped while a flow was reading it", fix="restore it")
