"""Silver batches with declared filters at most: counted while they are written, in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Observation
from pyspark.sql.functions import col, count, count_if, lit

from lodestream.errors import AuditFailed
from lodestream.flows.batch import Batch
from lodestream.flows.judging.judge import filtered_by
from lodestream.flows.judging.judged_rows import unaccounted
from lodestream.flows.writing.append import AppendBatch
from lodestream.names import FILTERED
from lodestream.pipeline import Filter
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Snapshot


class TransformedBatch(AppendBatch):
    """Rows as the function gives them; at least so many as `least`."""

    def __init__(self, lake: Lake, name: str, rows: DataFrame, read: int, least: int) -> None:
        super().__init__(lake, name, rows, read, exact=False)
        self._least = least

    def audit(self, snapshot: Snapshot) -> None:
        if snapshot.added_rows < self._least:
            raise unaccounted(self._name, self._least - snapshot.added_rows, self._least)


class FilteredBatch(Batch):
    def __init__(
        self, lake: Lake, name: str, rows: DataFrame, filters: Sequence[Filter], read: int, least: int
    ) -> None:
        self.counts: Mapping[str, int] = {"in": read}
        self._least = least
        self._lake = lake
        self._name = name
        self._observed = Observation()
        marked = rows.withColumn(FILTERED, filtered_by(filters))
        self._marked = marked.observe(
            self._observed, count(lit(1)).alias("made"), count_if(col(FILTERED).isNotNull()).alias("filtered")
        )

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        kept = self._marked.where(col(FILTERED).isNull()).drop(FILTERED)
        self._lake.append(self._name, kept, branch, properties)

    def audit(self, snapshot: Snapshot) -> None:
        seen = self._observed.get
        self.counts = {**self.counts, "filtered": int(seen["filtered"])}
        if int(seen["made"]) < self._least:
            raise unaccounted(self._name, self._least - int(seen["made"]), self._least)
        if snapshot.added_rows != int(seen["made"]) - int(seen["filtered"]):
            raise AuditFailed(
                f"{self._name}: {snapshot.added_rows:,} rows were written of {seen['made']:,} made, "
                f"{seen['filtered']:,} of them filtered out",
                why="a task ran twice and its function gave other rows the second time",
                fix="make the function depend on its inputs alone",
            )
