"""A Silver batch with declared filters and nothing else: counted while it is written, in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Observation
from pyspark.sql.functions import col, count, count_if, lit

from lodestream.errors import AuditFailed
from lodestream.flows.flow import Batch
from lodestream.flows.judge import FILTERED, filtered_by
from lodestream.pipeline import Filter
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Snapshot


class FilteredBatch(Batch):
    def __init__(self, lake: Lake, name: str, rows: DataFrame, filters: Sequence[Filter], read: int) -> None:
        self.counts: Mapping[str, int] = {"in": read}
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
        if snapshot.added_rows != int(seen["made"]) - int(seen["filtered"]):
            raise AuditFailed(
                f"{self._name}: {snapshot.added_rows:,} rows were written of {seen['made']:,} made, "
                f"{seen['filtered']:,} of them filtered out",
                why="a task ran twice and its function gave other rows the second time",
                fix="make the function depend on its inputs alone",
            )
