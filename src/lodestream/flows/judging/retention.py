"""What is kept of a batch between judging and writing: all of a small one, of a large one only the verdicts.

A small batch is decoded and judged once and kept: that is quickest. Of a large one the rows are made once more when
they are written, and nothing but a few bytes for each is kept, and the raw event of those that are refused. So memory
does not follow the batch, and dead letters cost as much as there are dead rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import bit_xor, col, count, expr, lit, size, struct, when, xxhash64
from pyspark.sql.types import DataType, StructType

from lodestream.contracts.quoting import name as quoted
from lodestream.flows.judging.terms import Terms
from lodestream.flows.letters.envelope import event_coordinates
from lodestream.names import CARRIED, FILTERED, REASONS, WARNED
from lodestream.tables.groupable import has_maps

# In what is kept of a row: which event it comes from, and its key.
_EVENT, KEY_HASH = "_lode_x_event", "_lode_x_hash"
_ROWS, _EVENTS = "claiming", "claimed"
# The whole batch; without the raw events of rows that pass; or the verdicts alone, and the rows are made again.
Keep = Literal["whole", "columns", "verdicts"]


class NeedsWhole(Exception):
    """A batch that was made twice was not the same, or raised the second time: it must be kept whole."""


@dataclass(frozen=True, slots=True)
class Retention:
    """`frame` says what is kept of judged rows; `again` is whether the rows themselves are made again."""

    frame: Callable[[DataFrame], DataFrame]
    again: bool = False


def lean(keep: Keep, terms: Terms, rows: int, claiming: Column) -> Retention | None:
    """How a large batch is kept; None: whole, because only the rows themselves can be compared."""
    if keep == "columns":
        return Retention(Lean(terms, rows, claiming).columns)
    # Keys without a dependable hash are compared as they are, which needs the rows.
    hashed = not terms.keys or terms.directory.addresses is not None
    return Retention(Lean(terms, rows, claiming).verdicts, again=True) if hashed else None


@dataclass(frozen=True, slots=True)
class Lean:
    terms: Terms
    rows: int
    claiming: Column

    def columns(self, judged: DataFrame) -> DataFrame:
        """Everything but the raw events of the rows that pass."""
        return judged.withColumn(CARRIED, self._raw())

    def verdicts(self, judged: DataFrame) -> DataFrame:
        """What counting, dead letters and the search for duplicates ask for."""
        event = when(self.claiming, event_hash(judged.schema[CARRIED].dataType))
        keys = [when(self.claiming, key).alias(KEY_HASH) for key in key_hash(self.terms)]
        periods = dict.fromkeys(one.column for one in self.terms.near)
        own = [self._raw().alias(CARRIED), event.alias(_EVENT), *keys]
        return judged.select(*map(quoted, periods), REASONS, FILTERED, WARNED, *own)

    def _raw(self) -> Column:
        return when((size(REASONS) > 0) | expr(self.terms.unknown.looked(self.rows)), col(CARRIED))


def key_hash(terms: Terms) -> list[Column]:
    """A number of a row's key; equal keys have the same."""
    addresses = terms.directory.addresses if terms.keys else None
    return [xxhash64(*[col(quoted(key)).cast(kind) for key, kind in addresses.keys])] if addresses else []


def event_hash(carried: DataType) -> Column:
    """A number of the event that a row comes from: the same whenever the row is made."""
    coordinates = event_coordinates(carried)
    if coordinates is not None:
        return xxhash64(coordinates)
    fields = carried.fields if isinstance(carried, StructType) else []
    own = [col(f"{CARRIED}.{quoted(one.name)}") for one in fields if not has_maps(one.dataType)]
    return xxhash64(struct(*own)) if own else xxhash64(lit(0))


def claimed(claiming: Column, event: Column | None = None) -> Sequence[Column]:
    """Aggregates that two makings of a batch must agree on: how many rows claim a place in the table, and which."""
    of = col(_EVENT) if event is None else event
    return count(when(claiming, lit(1))).alias(_ROWS), bit_xor(when(claiming, of)).alias(_EVENTS)


def same_claims(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one[name] == other[name] for name in (_ROWS, _EVENTS))
