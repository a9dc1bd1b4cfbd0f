"""A batch of changes: judged, ordered per key, and written as weighted rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Observation, Row
from pyspark.sql.functions import col, collect_set, lit, size, struct, when

from lodestream.contracts.quoting import name as quoted
from lodestream.errors import AuditFailed
from lodestream.flows.flow import Span
from lodestream.flows.keyed.floor import Floor, floor_of
from lodestream.flows.keyed.follow import Level
from lodestream.flows.keyed.judge import deletes
from lodestream.flows.keyed.rows import AT, upserted
from lodestream.flows.silver.judge import FILTERED, REASONS
from lodestream.flows.silver.judged import JudgedBatch
from lodestream.pipeline import Debezium
from lodestream.tables.feed import BATCH
from lodestream.tables.find import MOST_KEYS, quick_look, rows_of
from lodestream.tables.order import gathered
from lodestream.tables.snapshot import PREFIX, Snapshot

if TYPE_CHECKING:
    from lodestream.flows.keyed.flow import KeyedFlow

_LISTED = "keys"
# A row without a day lies in no range of days, and more ranges than this are as slow as none.
_MOST_DAYS = 62


class KeyedBatch(JudgedBatch):
    """Built on a table that has applied its whole feed: `level` says which snapshots those are."""

    def __init__(self, flow: KeyedFlow, frames: Mapping[str, DataFrame], span: Span, level: Level) -> None:
        self._keyed = flow
        self._at = level
        super().__init__(flow, frames, span)
        self._floor = self._find_floor()

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        number = int(properties[PREFIX + "batch"])
        rows = self.rows(self.changes(number))
        rows = self._floor.mark(rows) if self._floor else rows
        rows = rows.withColumn(BATCH, lit(number).cast("bigint"))
        told = Observation()
        few = 2 * self.most <= MOST_KEYS
        flow = self._keyed
        entry = addresses.entry() if (addresses := flow.directory.addresses) else None
        mark = addresses.hash() if (addresses := flow.marked.addresses) else None
        rows = rows.observe(told, *flow.watch.columns(few=few, at=AT, entry=entry, mark=mark)).drop(AT)
        flow.lake.append(flow.feed, rows, branch, properties)
        flow.written = flow.watch.facts(told.get, self._at.state.id, self._at.marks.id)

    def rows(self, changes: DataFrame) -> DataFrame:
        """The feed rows that the changes make of what is stored."""
        flow = self._keyed
        known = self.known(changes)
        marks = self.remembered(changes)
        return upserted(changes, known, marks, flow.keys, flow.columns)

    def changes(self, number: int) -> DataFrame:
        """The changes that take part, `_place` beside the table's columns."""
        return self.passed()

    def claiming(self) -> Column:
        return super().claiming() & ~deletes()

    def passed(self) -> DataFrame:
        passed = self.judged.where((size(REASONS) == 0) & col(FILTERED).isNull())
        if self._floor is None:
            return passed
        flow, at = self._keyed, self._at.state
        return self._floor.under(passed, flow.lake.whole(flow.name, at.id) if at.total_rows else None, flow.keys)

    @property
    def most(self) -> int:
        """How many keys may change, at most."""
        moved = self._floor is not None and self._floor.moved
        return self.counts["kept"] + (self._at.state.total_rows if moved else 0)

    def audit(self, snapshot: Snapshot) -> None:
        counts = self.counts
        self.account()
        if self._flow.limits is not None and snapshot.stamp is not None:
            self._flow.limits.check(self.judged, snapshot.stamp.batch, counts["in"], counts["dead"])
        if snapshot.added_rows > self.most_rows + self.borders:  # a truncate is a row, too
            raise AuditFailed(
                f"{self._keyed.feed}: {snapshot.added_rows:,} rows were written for {self.most:,} changes",
                why="the declared function gives other rows each time it runs (random values, the clock)",
                fix="make the function depend on its inputs alone",
            )

    @property
    def borders(self) -> int:
        """How many truncates each changed key is held against."""
        return self._floor.rows if self._floor is not None else 0

    @property
    def most_rows(self) -> int:
        """How many feed rows the changes can make, at most."""
        return 2 * self.most

    def _find_floor(self) -> Floor | None:
        flow, at = self._keyed, self._at.marks
        if not isinstance(flow.table.decode, Debezium):
            return None
        try:
            marks = flow.lake.whole(flow.marks, at.id) if at.total_rows else None
            return floor_of(self.judged, marks, flow.keys, every=flow.table.history)
        except BaseException:
            self.release()  # as in the judging itself: the batch does not exist yet
            raise

    def remembered(self, changes: DataFrame) -> DataFrame | None:
        """The marks of the changed keys; None when there are surely none, as for most batches."""
        at, flow, listed = self._at.marks, self._keyed, self.listed
        if at.total_rows == 0 or self.most == 0:
            return None
        directory = flow.marked.at(at, flow.follower.before_marks(at)) if listed else None
        if directory is not None:
            there, _ = directory.find([one["mark"] for one in listed])
            listed = [one for one, found in zip(listed, there, strict=True) if found]
            if not listed:
                return None
        rows = flow.lake.whole(flow.marks, at.id, quick_look(at, flow.lake.spark.sparkContext.defaultParallelism))
        return rows_of(self.near(rows), flow.keys, changes, list({one["first"] for one in listed}))

    def known(self, changes: DataFrame) -> DataFrame | None:
        """The table's own rows of the changed keys, and where they lie."""
        at, lake = self._at.state, self._keyed.lake
        if at.total_rows == 0 or self.most == 0:
            return None
        rows = lake.whole(self._keyed.name, at.id, quick_look(at, lake.spark.sparkContext.defaultParallelism))
        rows = rows.select("*", struct(col("_file").alias("file"), col("_pos").alias("pos")).alias(AT))
        rows = self.near(gathered(rows))
        listed = self.listed
        directory = self._keyed.directory.at(at, self._keyed.follower.before(at)) if listed else None
        if directory is None:
            return rows_of(rows, self._keyed.keys, changes, self.first_keys())
        there, days = directory.find([one["hash"] for one in listed])
        firsts = {one["first"] for one, found in zip(listed, there, strict=True) if found}
        if not firsts:
            return None
        rows = directory.addresses.on(rows, days) if len(days) <= _MOST_DAYS else rows
        return rows_of(rows, self._keyed.keys, changes, list(firsts))

    def near(self, rows: DataFrame) -> DataFrame:
        """Rows in the partitions of the batch, as far as these are part of the key; else a key may lie anywhere."""
        everything = self._floor is not None and self._floor.moved
        return rows if everything else self._near.only(rows, self._seen)

    def measures(self) -> list[Column]:
        first = when((size(REASONS) == 0) & col(FILTERED).isNull(), col(quoted(self._keyed.keys[0])))
        both = when(first.isNotNull(), struct(*self.listing(first)))
        few = self._span.rows <= MOST_KEYS and self._keyed.watch.exact
        listed = [collect_set(both).alias(_LISTED)] if few else []
        return [*super().measures(), *listed]

    def first_keys(self) -> list[object]:
        """The values of the first key column, when they are few; a truncate touches every key."""
        return list({one["first"] for one in self.listed})

    def listing(self, first: Column) -> list[Column]:
        kept = {"hash": self._keyed.directory.addresses, "mark": self._keyed.marked.addresses}
        hashes = [(one.hash() if one else lit(None).cast("bigint")).alias(name) for name, one in kept.items()]
        return [first.alias("first"), *hashes]

    @cached_property
    def listed(self) -> list[Row]:
        """The first column and the hashes of each changed key, when they are few and a truncate touches no others."""
        everything = self._floor is not None and self._floor.moved
        return list(self._seen[_LISTED]) if _LISTED in self._seen and not everything else []
