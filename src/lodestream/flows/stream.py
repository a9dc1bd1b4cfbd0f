"""Bronze from any Structured Streaming source: Spark plans the offsets, the table remembers them."""

from __future__ import annotations

import time

from pyspark.sql import DataFrame

from lodestream.flows.bronze import AppendBatch
from lodestream.flows.flow import Batch, Flow, Published, Span
from lodestream.pipeline import Table
from lodestream.sources.source import Position
from lodestream.sources.stream import StreamSource
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake
from lodestream.tables.publish import Base


class StreamFlow(Flow):
    """A step pulls one micro-batch and publishes it with the offsets that Spark has just planned for it."""

    def __init__(self, lake: Lake, table: Table, run: str, stream: StreamSource) -> None:
        super().__init__(lake, table, run, ())
        self._stream = stream
        self._pulled: DataFrame | None = None

    def create(self) -> IcebergStore:
        return self.lake.open(
            self.name,
            self._stream.ddl(),
            partition_by=self.table.partition_by,
            properties=dict(self.table.properties),
            comment=self.table.description,
        )

    def step(self, rows: int) -> Published | None:
        if self._writer is None:
            self.prepare()
        return self.until_published(lambda: self._pull(rows))

    def make(self, span: Span) -> Batch:
        if self._pulled is None:
            raise RuntimeError("only a pull makes a batch")
        return AppendBatch(self.lake, self.name, self._pulled, span.rows, exact=False)

    def accept_gap(self) -> Published:
        """Forget the position: the source starts anew from what is left of it."""
        if self._writer is None:
            self.prepare()
        base = self.writer.begin()
        since = dict(base.stamp.positions) if base.stamp else {}
        return self._run_batch(base, Span(since, {}, 0), time.perf_counter(), decision="accepted-gap")

    def close(self) -> None:
        self._stream.close()

    def _pull(self, rows: int) -> Published | None:
        # One base for the position that is read and for the rows that are staged: a run that publishes between the
        # two moves `main` away from it, and this batch is refused.
        base = self.writer.begin()
        since = base.stamp.positions.get(self._stream.name) if base.stamp else None
        published: list[Published] = []
        self._stream.pull(
            since,
            lambda frame, position: published.append(self._publish(base, since, frame, position)),
            rows,
            stopping=lambda: True,
        )
        return published[0] if published else None

    def _publish(self, base: Base, since: Position | None, frame: DataFrame, position: Position) -> Published:
        began = time.perf_counter()
        name = self._stream.name
        self._pulled = frame
        # How many rows Spark planned is not told; one stands for "some", the snapshot has the number.
        span = Span({name: since} if since else {}, {name: position}, 1, caught_up=False)
        return self._run_batch(base, span, began)
