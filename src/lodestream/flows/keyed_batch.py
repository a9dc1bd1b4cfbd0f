"""A batch of changes: judged, ordered per key, and written as weighted rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit, size

from lodestream.contracts.quoting import name as quoted
from lodestream.errors import AuditFailed
from lodestream.flows.flow import Span
from lodestream.flows.judge import FILTERED, REASONS
from lodestream.flows.judged import JudgedBatch
from lodestream.flows.keyed_follow import Level
from lodestream.flows.keyed_rows import upserted
from lodestream.tables.feed import BATCH
from lodestream.tables.find import MOST_KEYS, rows_of
from lodestream.tables.snapshot import PREFIX, Snapshot

if TYPE_CHECKING:
    from lodestream.flows.keyed import KeyedFlow


class KeyedBatch(JudgedBatch):
    """Built on a table that has applied its whole feed: `level` says which snapshots those are."""

    def __init__(self, flow: KeyedFlow, frames: Mapping[str, DataFrame], span: Span, level: Level) -> None:
        self._keyed = flow
        self._at = level
        self._listed: list[object] | None = None
        super().__init__(flow, frames, span)

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        number = int(properties[PREFIX + "batch"])
        rows = self.rows(self.changes(number)).withColumn(BATCH, lit(number).cast("bigint"))
        self._keyed.lake.append(self._keyed.feed, rows, branch, properties)

    def rows(self, changes: DataFrame) -> DataFrame:
        """The feed rows that the changes make of what is stored."""
        flow = self._keyed
        known = self.stored(changes, flow.name, self._at.state)
        marks = self.stored(changes, flow.marks, self._at.marks)
        return upserted(changes, known, marks, flow.keys, flow.columns)

    def changes(self, number: int) -> DataFrame:
        """The changes that take part, `_place` beside the table's columns."""
        return self.passed()

    def passed(self) -> DataFrame:
        return self.judged.where((size(REASONS) == 0) & col(FILTERED).isNull())

    @property
    def most(self) -> int:
        """How many keys may change, at most."""
        return self.counts["kept"]

    def audit(self, snapshot: Snapshot) -> None:
        counts = self.counts
        lost = self._span.rows - counts["in"]
        if lost > 0 and self._flow.decode is not None:
            raise AuditFailed(
                f"{self._flow.name}: {lost:,} of {self._span.rows:,} input rows are unaccounted for",
                why="the function dropped rows that neither a filter nor the contract explains",
                fix="declare the condition: filters={'name': 'rows to keep'}",
            )
        if self._flow.limits is not None and snapshot.stamp is not None:
            self._flow.limits.check(self.judged, snapshot.stamp.batch, counts["in"], counts["dead"])
        if snapshot.added_rows > self.most_rows:
            raise AuditFailed(
                f"{self._keyed.feed}: {snapshot.added_rows:,} rows were written for {self.most:,} changes",
                why="the declared function gives other rows each time it runs (random values, the clock)",
                fix="make the function depend on its inputs alone",
            )

    @property
    def most_rows(self) -> int:
        """How many feed rows the changes can make, at most."""
        return 2 * self.most

    def stored(self, changes: DataFrame, table: str, at: Snapshot) -> DataFrame | None:
        """The stored rows of the changed keys, as of one snapshot; None when nothing is stored."""
        if at.total_rows == 0 or self.most == 0:
            return None
        return rows_of(self._keyed.lake.whole(table, at.id), self._keyed.keys, changes, self._first_keys(changes))

    def _first_keys(self, changes: DataFrame) -> list[object]:
        """The values of the first key column, when they are few."""
        if self._listed is None:
            first = changes.select(quoted(self._keyed.keys[0])).distinct()
            self._listed = [row[0] for row in first.collect()] if self.most <= MOST_KEYS else []
        return self._listed
