"""Rows that are written as they are, in one pass."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from lodestream.errors import AuditFailed
from lodestream.flows.batch import Batch
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Snapshot


class AppendBatch(Batch):
    def __init__(self, lake: Lake, name: str, rows: DataFrame, expected: int, *, exact: bool = True) -> None:
        self.counts = {"in": expected}
        self._exact = exact
        self._lake = lake
        self._name = name
        self._rows = rows

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        self._lake.append(self._name, self._rows, branch, properties)

    def audit(self, snapshot: Snapshot) -> None:
        # Fewer is possible: transaction markers, aborted and compacted records take offsets and give no row.
        if self._exact and snapshot.added_rows > self.counts["in"]:
            raise AuditFailed(
                f"{self._name}: {snapshot.added_rows:,} rows came out of {self.counts['in']:,} input positions",
                why="a source gave rows that its positions do not cover",
                fix="report this with the output of `lode events --table " + self._name + "`",
            )
