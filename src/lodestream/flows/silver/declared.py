"""A flow of declared code: which inputs it reads, what its function or query makes of them, and what may be counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, struct

from lodestream.contracts import Contract, Field
from lodestream.flows.dead.envelope import EVENT
from lodestream.flows.flow import Flow
from lodestream.flows.silver.accounting import multiplies
from lodestream.flows.silver.judge import CARRIED, ERROR
from lodestream.flows.usercode import transform
from lodestream.sources.source import Source
from lodestream.sources.table import AppendedRows
from lodestream.tables.evolving import spelt

Decoder = Callable[[DataFrame], DataFrame]


class DeclaredFlow(Flow):
    inputs: tuple[str, ...]
    lookups: frozenset[str]
    corrected: frozenset[str]
    keys: tuple[str, ...]
    contract: Contract | None
    decode: Decoder | None
    _careful = False

    def drives(self, source: Source) -> bool:
        return source.name not in self.lookups or source.name in self.corrected

    @property
    def driving(self) -> str:
        return next(name for name in self.inputs if name not in self.lookups)

    @property
    def judges(self) -> bool:
        """Whether rows may turn out to be dead letters or duplicates."""
        return self._careful or bool(self.contract or self.decode or self.keys or self.table.expectations)

    @property
    def accounts(self) -> bool:
        """Whether each row of the input must come out again: not where two inputs meet, or where changes are netted."""
        followed = [one for one in self.sources if one.name not in self.lookups]
        return self.decode is not None or (len(followed) == 1 and isinstance(followed[0], AppendedRows))

    @cached_property
    def multiplies(self) -> bool:
        """Whether the declared code may make several rows of one."""
        return multiplies(self.declared())

    def declared(self) -> DataFrame:
        """The declared rows over inputs that have columns and nothing else: their plan is that of the code alone."""
        shapes = {name: self.lake.whole(name).limit(0) for name in self.inputs}
        shapes[self.driving] = self.carried(shapes[self.driving])
        bare = {name: self.lake.spark.createDataFrame([], frame.schema) for name, frame in shapes.items()}
        return self.transformed(bare)

    @cached_property
    def arrival(self) -> str | None:
        """When an event reached the broker; for files, when the file was written."""
        if self.decode is None:
            return None
        return f"{CARRIED}.timestamp" if "timestamp" in self.lake.whole(self.driving).columns else f"{CARRIED}.modified"

    def transformed(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        ordered = {name: frames[name] for name in self.inputs}
        return transform(self.lake.spark, self.table, ordered, (self.driving, CARRIED) if self.judges else None)

    def carried(self, rows: DataFrame) -> DataFrame:
        """The driving input as the function sees it: decoded if declared, the raw row beside it in `_lode`."""
        if self.decode is not None:
            return self.decode(rows).drop(ERROR)
        if self.judges:
            return rows.withColumn(CARRIED, struct(*[col(f"`{name}`") for name in rows.columns])).drop(EVENT)
        return rows

    def _shape(self) -> DataFrame:
        """The declared rows over empty inputs: only their columns count."""
        frames = {name: self.lake.whole(name).limit(0) for name in self.inputs}
        frames[self.driving] = self.carried(frames[self.driving])
        return self.transformed(frames)

    def _of_function(self) -> Contract:
        """Without a contract, the columns are those that the function gives."""
        fields = [one for one in self._shape().schema if one.name != CARRIED]
        return Contract(self.table.short, "0", tuple(Field(one.name, spelt(one.dataType)) for one in fields))
