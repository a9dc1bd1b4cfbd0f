"""A keyed table that keeps every version of a row: SCD type 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, StructField, StructType

from lodestream.errors import DeclarationError
from lodestream.flows.flow import Span
from lodestream.flows.keyed.batch import KeyedBatch
from lodestream.flows.keyed.flow import KeyedFlow
from lodestream.flows.keyed.history_rows import CURRENT, FROM, TO, versioned
from lodestream.flows.keyed.judge import PLACE


class HistoryFlow(KeyedFlow):
    """`valid_from` is the first `sequence_by` column; `valid_to` is that of the next change, null while none is."""

    @property
    def identity(self) -> Sequence[str]:
        return (*self.keys, FROM)

    @cached_property
    def own(self) -> list[str]:
        return [one for one in self.columns if one not in (FROM, TO, CURRENT)]

    def judged(self, frames: Mapping[str, DataFrame], span: Span) -> HistoryBatch:
        return HistoryBatch(self, frames, span, self.catch_up())

    def judged_shape(self) -> StructType:
        shape = super().judged_shape()
        place = shape[PLACE].dataType
        if not isinstance(place, StructType) or "by_0" not in place.names:
            raise DeclarationError(
                f"{self.name} keeps a history and has no sequence_by",
                why="nothing says from when on a row is valid: its input has no broker timestamp either",
                fix="add sequence_by= with the column that orders the changes of a key",
            )
        taken = {FROM, TO, CURRENT} & set(shape.names)
        if taken:
            raise DeclarationError(
                f"{self.name} gives {', '.join(sorted(taken))} itself",
                why="history=True adds valid_from, valid_to and is_current",
                fix="rename these columns in the function or the contract",
            )
        moment = place["by_0"].dataType
        added = [StructField(FROM, moment), StructField(TO, moment), StructField(CURRENT, BooleanType())]
        own = [field for field in shape if field.name != PLACE]
        return StructType([*own, *added, shape[PLACE]])


class HistoryBatch(KeyedBatch):
    _keyed: HistoryFlow

    def rows(self, changes: DataFrame) -> DataFrame:
        flow = self._keyed
        known = self.known(changes)
        marks = self.remembered(changes)
        return versioned(changes, known, marks, flow.keys, flow.own)

    @property
    def most_rows(self) -> int:
        # A version is taken back and given again; the one before it ends earlier; and one may be a mark.
        return 4 * self.most * (1 + self.borders)
