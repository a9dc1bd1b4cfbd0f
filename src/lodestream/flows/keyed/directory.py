"""Which keys a table holds and on which days they lie, in memory: a new key then costs no search in any file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, expr, lit, to_date, unix_date, xxhash64
from pyspark.sql.types import DateType, StructType, TimestampNTZType, TimestampType

from lodestream.contracts.quoting import name as quoted
from lodestream.flows.shape import partition_columns
from lodestream.tables.find import EXACT

# Eight bytes a row: beyond this many the table is searched with the filters of its files.
MOST_ROWS = 20_000_000
# Below, a search costs no more than asking here.
FEWEST_ROWS = 50_000
# So many are kept apart: putting a few among millions costs as much as putting many.
_MOST_RECENT = 200_000
_DAY, _HASH = 0xFFFF_FFFF, -0x1_0000_0000
_NO_DAY = -(2**31)
Entries = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Addresses:
    """How rows are noted: a hash of the key, or half of it beside the day that the table is partitioned by."""

    keys: tuple[tuple[str, str], ...]
    day: str | None

    @classmethod
    def over(cls, keys: Sequence[str], partition_by: Sequence[str], schema: StructType) -> Addresses | None:
        """None when equal keys might have different hashes, as numbers that are no whole ones do."""
        kinds = {field.name: field.dataType for field in schema}
        if not all(isinstance(kinds[key], EXACT) for key in keys):
            return None
        days = [
            one.column
            for one in partition_columns(partition_by, schema.names)
            if isinstance(kinds[one.column], (DateType, TimestampType, TimestampNTZType))
        ]
        return cls(tuple((key, kinds[key].simpleString()) for key in keys), days[0] if days else None)

    def hash(self) -> Column:
        whole = xxhash64(*[col(quoted(key)).cast(kind) for key, kind in self.keys])
        return whole if self.day is None else whole.bitwiseAND(lit(_HASH))

    def entry(self) -> Column:
        if self.day is None:
            return self.hash()
        day = coalesce(unix_date(to_date(col(quoted(self.day)))), lit(_NO_DAY)).cast("bigint")
        return self.hash().bitwiseOR(day.bitwiseAND(lit(_DAY)))

    def on(self, rows: DataFrame, days: Sequence[int]) -> DataFrame:
        """The rows of these days, as entries tell them: Iceberg skips the files of all others."""
        if self.day is None or not days:
            return rows
        kind = rows.schema[self.day].dataType.simpleString()
        verdict = lit(False)
        for day in days:
            start, end = (f"CAST(date_from_unix_date({one}) AS {kind})" for one in (day, day + 1))
            inside = f"{quoted(self.day)} >= {start} AND {quoted(self.day)} < {end}"
            verdict = verdict | (col(quoted(self.day)).isNull() if day == _NO_DAY else expr(inside))
        return rows.where(verdict)


class KeyDirectory:
    """Holds at least every key of the table at snapshot `state`; keys that are gone stay, and cost a search."""

    def __init__(self, addresses: Addresses, entries: NDArray[np.int64], state: int) -> None:
        self._entries: Entries = np.unique(entries.view(np.uint64))
        self._recent: Entries = self._entries[:0]
        self.addresses = addresses
        self.state = state

    @classmethod
    def of(cls, addresses: Addresses, rows: DataFrame, state: int) -> KeyDirectory:
        found = rows.select(addresses.entry().alias("entry")).toArrow().column("entry")
        return cls(addresses, found.to_numpy(), state)

    def find(self, hashes: Sequence[int], *, any_day: bool = True) -> tuple[list[bool], list[int]]:
        """Which of the hashes may be there, and the days on which they may lie; or, not on any day, which entries."""
        low = _unsigned(hashes)
        high = low | np.uint64(_DAY) if any_day and self.addresses.day is not None else low
        there, days = np.zeros(len(low), dtype=np.bool_), set[int]()
        for entries in (self._entries, self._recent):
            first = np.searchsorted(entries, low)
            last = np.searchsorted(entries, high, side="right")
            there |= last > first
            for start, end in zip(first[last > first], last[last > first], strict=True):
                days.update((entries[start:end] & np.uint64(_DAY)).astype(np.uint32).view(np.int32).tolist())
        return there.tolist(), sorted(days)

    def follow(self, came: Iterable[int], state: int) -> None:
        """The table has applied these rows as well, and is now at another snapshot."""
        self.state = state
        self._recent = np.union1d(self._recent, _unsigned(list(came)))
        if len(self._recent) > _MOST_RECENT:
            self._entries, self._recent = np.union1d(self._entries, self._recent), self._entries[:0]


def _unsigned(numbers: Sequence[int]) -> Entries:
    return np.array(numbers, dtype=np.int64).view(np.uint64)
