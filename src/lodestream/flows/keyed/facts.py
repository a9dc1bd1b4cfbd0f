"""What one feed snapshot holds: told while it is written, or by one small job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, collect_list, collect_set, count_if, when
from pyspark.sql.types import StructType

from lodestream.contracts.quoting import name as quoted
from lodestream.flows.pruning import Pruning
from lodestream.flows.shape import partition_columns
from lodestream.tables.feed import WEIGHT
from lodestream.tables.find import EXACT, MOST_KEYS
from lodestream.tables.snapshot import Snapshot
from lodestream.tables.swap import Place


@dataclass(frozen=True, slots=True)
class Facts:
    """How many rows came, went and only mark a place.

    Of those that went: the first key, when they are few, and between which values of the partition columns they lie;
    and `places`, where they lay in the table as of its snapshot `state`, when a batch has just looked them up. Of those
    that came, their `entries` in the directory of keys, when they are few; of those that mark a place, `remembered`, on
    top of the snapshot `marks_state` of the marks.
    """

    came: int = 0
    gone: int = 0
    marks: int = 0
    replaced: tuple[object, ...] = ()
    within: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    places: tuple[Place, ...] = ()
    state: int | None = None
    entries: tuple[int, ...] = ()
    remembered: tuple[int, ...] = ()
    marks_state: int | None = None

    def placed(self, state: int) -> bool:
        """Whether it is known where each row that went lies in this very snapshot of the table."""
        return self.state == state and len(self.places) == self.gone

    @property
    def of_marks(self) -> Facts:
        """The same of the table of marks, which only grows."""
        return Facts(came=self.marks, state=self.marks_state, entries=self.remembered)


@dataclass(frozen=True, slots=True)
class FeedWatch:
    """Which facts to tell: by the first key, and by the partitions that rows lie in."""

    key: str
    partition_by: tuple[str, ...] = ()
    pruning: Pruning = field(default_factory=Pruning)
    exact: bool = True  # the first key is the same again after Python had it, so that rows can be looked for by it

    @classmethod
    def over(cls, key: str, partition_by: Sequence[str], schema: StructType) -> FeedWatch:
        pruning = Pruning.over(partition_columns(partition_by, schema.names), schema)
        return cls(key, tuple(partition_by), pruning, isinstance(schema[key].dataType, EXACT))

    def columns(
        self, *, few: bool, at: str | None = None, entry: Column | None = None, mark: Column | None = None
    ) -> list[Column]:
        went = col(WEIGHT) < 0
        found = [
            count_if(col(WEIGHT) > 0).alias("came"),
            count_if(went).alias("gone"),
            count_if(col(WEIGHT) == 0).alias("marks"),
        ]
        found += self.pruning.extent(f"{WEIGHT} < 0")
        if few and self.exact:
            found.append(collect_set(when(went, col(quoted(self.key)))).alias("replaced"))
        if few and at:
            found.append(collect_list(when(went, col(at))).alias("places"))
        if few and entry is not None:
            found.append(collect_list(when(col(WEIGHT) > 0, entry)).alias("entries"))
        if few and mark is not None:
            found.append(collect_list(when(col(WEIGHT) == 0, mark)).alias("remembered"))
        return found

    def facts(self, told: Mapping[str, Any], state: int | None = None, marks_state: int | None = None) -> Facts:
        within = self.pruning.ranges(told)
        replaced, places = (tuple(told.get(name) or ()) for name in ("replaced", "places"))
        places = tuple((one.file, one.pos) for one in places)
        entries, remembered = (tuple(told.get(name) or ()) for name in ("entries", "remembered"))
        return Facts(
            told["came"], told["gone"], told["marks"], replaced, within, places, state, entries, remembered, marks_state
        )

    def look(self, rows: DataFrame, snapshot: Snapshot) -> Facts:
        if snapshot.added_rows == 0:
            return Facts()
        return self.facts(rows.agg(*self.columns(few=snapshot.added_rows <= MOST_KEYS)).collect()[0].asDict())
