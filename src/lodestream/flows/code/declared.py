"""Declared code over its inputs: what its function or query makes of them, and what may be counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, struct

from lodestream.contracts import Contract, Field
from lodestream.contracts.quoting import name as quoted
from lodestream.flows.code.plan_steps import multiplies, refuse_distinct
from lodestream.flows.code.usercode import transform
from lodestream.names import CARRIED, ERROR, EVENT
from lodestream.pipeline import Table
from lodestream.sources.codecs.frame import Decoder
from lodestream.sources.coordinates import arrival_in
from lodestream.sources.source import Source
from lodestream.tables.evolving import spelt
from lodestream.tables.hidden import shown
from lodestream.tables.lake import Lake


@dataclass(frozen=True)
class DeclaredInputs:
    """What a table reads: `names` in declared order. News of `lookups` start no batch, unless they are `corrected`."""

    sources: tuple[Source, ...]
    names: tuple[str, ...]
    lookups: frozenset[str] = frozenset()
    corrected: frozenset[str] = frozenset()

    def drives(self, source: Source) -> bool:
        return source.name not in self.lookups or source.name in self.corrected

    @cached_property
    def driving(self) -> str:
        return next(name for name in self.names if name not in self.lookups)

    @property
    def followed(self) -> list[Source]:
        return [one for one in self.sources if one.name not in self.lookups]


@dataclass(frozen=True)
class DeclaredRows:
    """The rows that declared code makes, under one contract.

    `carries` is whether the raw row rides along in a column, so that a refused row can be kept. A table that follows a
    keyed one keeps what was made instead (`keeps_result`): its function need not carry anything.
    """

    lake: Lake
    table: Table
    inputs: DeclaredInputs
    decode: Decoder | None
    carries: bool
    keeps_result: bool = False
    told: Callable[[Sequence[str]], None] = lambda _columns: None

    @property
    def driving(self) -> str:
        return self.inputs.driving

    @property
    def accounts(self) -> bool:
        """Whether each row of the input must come out again: not where two inputs meet, or where changes are netted."""
        followed = self.inputs.followed
        return self.decode is not None or (len(followed) == 1 and followed[0].appends)

    @cached_property
    def multiplies(self) -> bool:
        """Whether the declared code may make several rows of one."""
        rows = self.over_nothing()
        if self.carries:
            refuse_distinct(self.table.name, rows)
        return multiplies(rows)

    @cached_property
    def arrival(self) -> str | None:
        """When an event came: when it reached the broker, or when its file was written."""
        if self.decode is None:
            return None
        column = arrival_in(self.lake.whole(self.driving).columns)
        return f"{CARRIED}.{column}" if column else None

    def made(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        """What the code makes of these inputs; the driving one as `carried` gives it."""
        ordered = {name: frames[name] for name in self.inputs.names}
        required = (self.driving, CARRIED) if self.carries and not self.keeps_result else None
        rows = transform(self.lake.spark, self.table, ordered, required)
        if self.keeps_result and CARRIED not in rows.columns:
            rows = rows.withColumn(CARRIED, struct(*map(quoted, rows.columns)))
        self.told(rows.columns)
        return rows

    def carried(self, rows: DataFrame) -> DataFrame:
        """The driving input as the function sees it: decoded if declared, the raw row beside it."""
        if self.decode is not None:
            return self.decode(rows).drop(ERROR)
        if self.carries:
            return rows.withColumn(CARRIED, struct(*[col(f"`{name}`") for name in rows.columns])).drop(EVENT)
        return rows

    def shape(self) -> DataFrame:
        """The declared rows over empty inputs: only their columns count."""
        return self.made(self._empty())

    def over_nothing(self) -> DataFrame:
        """The declared rows over inputs that have columns and nothing else: their plan is that of the code alone."""
        shapes = self._empty()
        return self.made({name: self.lake.spark.createDataFrame([], one.schema) for name, one in shapes.items()})

    def as_contract(self) -> Contract:
        """Without a contract, the columns are those that the function gives."""
        fields = [one for one in self.shape().schema if one.name != CARRIED]
        return Contract(self.table.short, "0", tuple(Field(one.name, spelt(one.dataType)) for one in fields))

    def _empty(self) -> dict[str, DataFrame]:
        frames = {name: shown(self.lake.whole(name)).limit(0) for name in self.inputs.names}
        frames[self.driving] = self.carried(frames[self.driving])
        return frames
