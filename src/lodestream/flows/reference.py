"""Reference data: a file beside the pipeline, loaded whole whenever its content changes, with its history if asked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from lodestream.contracts import Contract
from lodestream.flows.flow import Batch, Flow, Span
from lodestream.flows.reference_history import HISTORY_DDL, with_history
from lodestream.flows.shape import ddl_of
from lodestream.pipeline import Table
from lodestream.sources.reference import ReferenceFile
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake


class ReferenceFlow(Flow):
    def __init__(self, lake: Lake, table: Table, run: str, source: ReferenceFile, contract: Contract | None) -> None:
        super().__init__(lake, table, run, [source])
        self._file = source
        self._contract = contract

    def create(self) -> IcebergStore:
        ddl = self._contract.ddl() if self._contract else ddl_of(self._file.frame().schema)
        ddl = f"{ddl}, {HISTORY_DDL}" if self.table.history else ddl
        return self.lake.open(self.name, ddl, properties=dict(self.table.properties), comment=self.table.description)

    def make(self, span: Span) -> Batch:
        rows = self._file.read(span.since[self._file.name], span.to[self._file.name])
        if self.table.history:
            stored = self.lake.whole(self.name) if span.previous is not None else None
            rows = with_history(rows, stored, self._keys, datetime.now(UTC))
        return _Reload(self, rows, span.rows)

    @property
    def _keys(self) -> tuple[str, ...]:
        return self.table.keys or (self._contract.keys if self._contract else ())


class _Reload(Batch):
    def __init__(self, flow: ReferenceFlow, rows: DataFrame, read: int) -> None:
        self.counts = {"in": read}
        self._flow = flow
        self._rows = rows

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        self._flow.lake.overwrite(self._flow.name, self._rows, branch, properties)
