"""Silver: decoded, conformed to the contract, deduplicated. Every input row is accounted for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, struct

from lodestream.contracts import Contract
from lodestream.flows.bronze import AppendBatch
from lodestream.flows.dead import DeadLetters
from lodestream.flows.filtered import FilteredBatch
from lodestream.flows.flow import Batch, Flow, Span
from lodestream.flows.judge import CARRIED, ERROR, Judge
from lodestream.flows.judged import JudgedBatch
from lodestream.flows.limits import LimitWatch
from lodestream.flows.shape import ddl_of
from lodestream.flows.usercode import transform
from lodestream.pipeline import Table
from lodestream.sources.source import Source
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake

Decoder = Callable[[DataFrame], DataFrame]


class SilverFlow(Flow):
    def __init__(
        self,
        lake: Lake,
        table: Table,
        run: str,
        sources: Sequence[Source],
        *,
        inputs: Sequence[str],
        lookups: Sequence[str] = (),
        contract: Contract | None = None,
        decode: Decoder | None = None,
    ) -> None:
        super().__init__(lake, table, run, sources)
        self.inputs = tuple(inputs)
        self.lookups = frozenset(lookups)
        self.contract = contract
        self.decode = decode
        self.dead = DeadLetters(lake, self.name, run)
        self.limits = LimitWatch(self.name, contract) if contract else None
        self.keys = table.keys or (contract.keys if contract else ())

    def drives(self, source: Source) -> bool:
        return source.name not in self.lookups

    def create(self) -> IcebergStore:
        ddl = self.contract.ddl() if self.contract else ddl_of(self._shape().schema, without=[CARRIED])
        return self.lake.open(
            self.name,
            ddl,
            partition_by=self.table.partition_by,
            properties=dict(self.table.properties),
            comment=self.table.description or (self.contract.description if self.contract else None),
        )

    def make(self, span: Span) -> Batch:
        frames = {source.name: source.read(span.since[source.name], span.to[source.name]) for source in self.sources}
        if self.judges:
            self.dead.settle(self.writer.store)
            return JudgedBatch(self, frames, span)
        if self.table.filters:
            return FilteredBatch(self.lake, self.name, self.transformed(frames), self.table.filters, span.rows)
        return AppendBatch(self.lake, self.name, self.transformed(frames), span.rows, exact=False)

    @property
    def judges(self) -> bool:
        """Whether rows may turn out to be dead letters or duplicates."""
        return bool(self.contract or self.decode or self.keys or self.table.expectations)

    @property
    def driving(self) -> str:
        return next(name for name in self.inputs if name not in self.lookups)

    @cached_property
    def judge(self) -> Judge:
        arrival = f"{CARRIED}.timestamp" if self.decode else None
        return Judge(self.name, self.contract, self.table.filters, self.table.expectations, arrival, self.keys)

    def transformed(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        ordered = {name: frames[name] for name in self.inputs}
        return transform(self.lake.spark, self.table, ordered)

    def _shape(self) -> DataFrame:
        """The declared rows over empty inputs: only their columns count."""
        frames = {name: self.lake.whole(name).limit(0) for name in self.inputs}
        frames[self.driving] = self.carried(frames[self.driving])
        return self.transformed(frames)

    def carried(self, rows: DataFrame) -> DataFrame:
        """The driving input as the function sees it: decoded if declared, the raw row beside it in `_lode`."""
        if self.decode is not None:
            return self.decode(rows).drop(ERROR)
        if self.judges:
            return rows.withColumn(CARRIED, struct(*[col(f"`{name}`") for name in rows.columns]))
        return rows
