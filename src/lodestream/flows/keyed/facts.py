"""What one feed snapshot holds: told while it is written, or by one small job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, collect_list, collect_set, count_if, max, min, when
from pyspark.sql.types import DateType, IntegerType, LongType, StringType, StructType, TimestampNTZType, TimestampType

from lodestream.contracts.quoting import name as quoted
from lodestream.contracts.quoting import text
from lodestream.flows.shape import partition_columns
from lodestream.tables.feed import WEIGHT
from lodestream.tables.find import MOST_KEYS
from lodestream.tables.snapshot import Snapshot
from lodestream.tables.swap import Place

# Types whose values, as text, are literals again: of these a range can be told.
_PREFIXES = {DateType: "DATE", TimestampType: "TIMESTAMP", TimestampNTZType: "TIMESTAMP_NTZ", StringType: ""}
_NUMBERS = (IntegerType, LongType)


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
    """Which facts to tell: by the first key, and by these columns with the word that begins a literal of theirs."""

    key: str
    partition_by: tuple[str, ...] = ()
    spans: tuple[tuple[str, str | None], ...] = ()

    @classmethod
    def over(cls, key: str, partition_by: Sequence[str], schema: StructType) -> FeedWatch:
        found: list[tuple[str, str | None]] = []
        for one in partition_columns(partition_by, schema.names):
            kind = type(schema[one.column].dataType)
            if kind in _PREFIXES or kind in _NUMBERS:
                found.append((one.column, _PREFIXES.get(kind)))
        return cls(key, tuple(partition_by), tuple(found))

    def columns(
        self, *, few: bool, at: str | None = None, entry: Column | None = None, mark: Column | None = None
    ) -> list[Column]:
        went = col(WEIGHT) < 0
        found = [
            count_if(col(WEIGHT) > 0).alias("came"),
            count_if(went).alias("gone"),
            count_if(col(WEIGHT) == 0).alias("marks"),
        ]
        for number, (name, _) in enumerate(self.spans):
            value = when(went, col(quoted(name)))
            found.append(min(value).cast("string").alias(f"low_{number}"))
            found.append(max(value).cast("string").alias(f"high_{number}"))
            found.append(count_if(went & col(quoted(name)).isNull()).alias(f"none_{number}"))
        if few:
            found.append(collect_set(when(went, col(quoted(self.key)))).alias("replaced"))
        if few and at:
            found.append(collect_list(when(went, col(at))).alias("places"))
        if few and entry is not None:
            found.append(collect_list(when(col(WEIGHT) > 0, entry)).alias("entries"))
        if few and mark is not None:
            found.append(collect_list(when(col(WEIGHT) == 0, mark)).alias("remembered"))
        return found

    def facts(self, told: Mapping[str, Any], state: int | None = None, marks_state: int | None = None) -> Facts:
        within = {}
        for number, (name, prefix) in enumerate(self.spans):
            low, high = told[f"low_{number}"], told[f"high_{number}"]
            if low is not None and not told[f"none_{number}"]:  # a row without the value lies in no range
                within[name] = (_literal(low, prefix), _literal(high, prefix))
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


def _literal(value: str, prefix: str | None) -> str:
    return value if prefix is None else f"{prefix}{text(value)}"
