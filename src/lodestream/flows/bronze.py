"""Bronze: what came in, as it came in."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from lodestream.errors import AuditFailed
from lodestream.flows.flow import Batch, Flow, Span
from lodestream.pipeline import Table
from lodestream.sources.source import Source
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Snapshot


class BronzeFlow(Flow):
    """Appends a span of the source, byte for byte. Nothing is parsed, so nothing can be refused."""

    def __init__(self, lake: Lake, table: Table, run: str, source: Source, ddl: str) -> None:
        super().__init__(lake, table, run, [source])
        self.ddl = ddl

    def create(self) -> IcebergStore:
        return self.lake.open(
            self.name,
            self.ddl,
            partition_by=self.table.partition_by,
            properties=dict(self.table.properties),
            comment=self.table.description,
        )

    def make(self, span: Span) -> Batch:
        (source,) = self.sources
        rows = source.read(span.since[source.name], span.to[source.name])
        return AppendBatch(self.lake, self.name, rows, span.rows, exact=not source.estimates)


class AppendBatch(Batch):
    """Rows that are written as they are, in one pass."""

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
