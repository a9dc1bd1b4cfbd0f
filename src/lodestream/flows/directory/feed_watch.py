"""What one feed snapshot holds: told while it is written, or by one small job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, collect_list, collect_set, count_if, when
from pyspark.sql.types import StructType

from lodestream.contracts.quoting import name as quoted
from lodestream.flows.batch import Facts
from lodestream.flows.columns.pruning import Pruning
from lodestream.flows.columns.shape import partition_columns
from lodestream.names import WEIGHT
from lodestream.tables.find import EXACT, MOST_KEYS
from lodestream.tables.snapshot import Snapshot


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
        found += [count_if((col(WEIGHT) > 0) & col(at).isNotNull()).alias("replacing")] if at else []
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
        came, gone, marks, replacing = (int(told.get(name) or 0) for name in ("came", "gone", "marks", "replacing"))
        return Facts(
            came, gone, marks, replaced, within, places, state, entries, remembered, marks_state, replacing
        )  # fmt: skip

    def look(self, rows: DataFrame, snapshot: Snapshot) -> Facts:
        if snapshot.added_rows == 0:
            return Facts()
        return self.facts(rows.agg(*self.columns(few=snapshot.added_rows <= MOST_KEYS)).collect()[0].asDict())
