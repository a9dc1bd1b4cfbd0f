"""The first row of each key stays: which rows of a batch have come before, with the batch or in the table.

A key counts once in the table; where the declaration bounds that (`dedupe_within`), once within each of its periods.
The period is then part of the comparison: how the input was cut into batches does not decide what is a duplicate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql.functions import broadcast, col, collect_set, lit, row_number, struct, when

from lodestream.contracts.quoting import name as quoted
from lodestream.flows.columns.pruning import Pruning
from lodestream.flows.context import SMALL
from lodestream.flows.directory.directory import Addresses, KeyDirectory
from lodestream.tables.find import EXACT, MOST_KEYS, quick_look, rows_of
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Snapshot

_ASKED, _KEY, _RANK, _KNOWN = "asked", "_lode_x_key", "_lode_x_rank", "_lode_x_known"
_WITHIN_A_DAY = ("days", "hours", "identity")
# A filter for each of more days than this is slower than none.
_MOST_DAYS = 62
# More keys than this are not held in memory at once.
MOST_BROADCAST = 50_000


@dataclass(frozen=True, slots=True)
class Stored:
    """The table that a batch is built on."""

    lake: Lake
    name: str
    head: Snapshot | None


@dataclass(frozen=True, slots=True)
class Found:
    """The table's rows that have a key of the batch, None when there are none; and whether the batch has each key once.

    `few` is whether those rows have room in the memory of each process.
    """

    held: DataFrame | None
    all_differ: bool
    few: bool = True

    @property
    def none(self) -> bool:
        """Whether surely no row has come before."""
        return self.held is None and self.all_differ


@dataclass(frozen=True, slots=True)
class KeySearch:
    """What a batch wants to know of its keys.

    They are compared within `bound`, and lie in no other partitions than those of `near`; `addresses` are how the
    table's directory notes them.
    """

    keys: tuple[str, ...]
    bound: Pruning
    near: Pruning
    addresses: Addresses | None

    def columns(self, judged: DataFrame, rows: int, claiming: Column) -> list[Column]:
        """Aggregates that list the keys of a batch, when they are few and the same again after Python had them."""
        if rows > SMALL or not isinstance(judged.schema[self.keys[0]].dataType, EXACT):
            return []
        noted = [self.addresses.hash().alias("hash"), self.addresses.entry().alias("entry")] if self.addresses else []
        return [collect_set(when(claiming, struct(col(quoted(self.keys[0])).alias("first"), *noted))).alias(_ASKED)]

    def entries(self, seen: Row) -> list[int] | None:
        """The batch's keys as the directory notes them; None when they are not listed."""
        return [one["entry"] for one in seen[_ASKED]] if self.addresses and _ASKED in seen else None

    def all_differ(self, seen: Row, rows: int) -> bool:
        """Whether the rows surely have a key each."""
        return self.addresses is not None and _ASKED in seen and len({one["hash"] for one in seen[_ASKED]}) == rows

    def held(self, table: Stored, good: DataFrame, seen: Row, directory: KeyDirectory | None) -> DataFrame | None:
        """The table's rows that have a key of the batch; None when there are surely none."""
        asked, days = (list(seen[_ASKED]) if _ASKED in seen else []), list[int]()
        if directory is not None:
            asked, days = self._perhaps_there(asked, directory)
        head = table.head
        if head is None or head.total_rows == 0 or (directory is not None and not asked):
            return None
        options = quick_look(head, table.lake.spark.sparkContext.defaultParallelism) if asked else None
        rows = self.near.only(table.lake.whole(table.name, options=options), seen)
        if directory is not None and len(days) <= _MOST_DAYS:
            rows = directory.addresses.on(rows, days)
        firsts = list({one["first"] for one in asked})
        if 0 < len(firsts) <= MOST_KEYS:
            columns = dict.fromkeys([*self.keys, *(one.column for one, _ in self.bound.fields)])
            return rows_of(rows.select(*map(quoted, columns)), self.keys, good, firsts)
        return rows.join(broadcast(good.select(*map(quoted, self.keys))), list(self.keys), "left_semi")

    def held_by_hash(self, table: Stored, hashes: DataFrame, of_key: Column, seen: Row) -> DataFrame | None:
        """The table's rows whose key has one of the hashes; None when the table has no rows.

        `hashes` has one column, and `of_key` is the same hash over a row of the table.
        """
        if table.head is None or table.head.total_rows == 0:
            return None
        (name,) = hashes.columns
        rows = self.near.only(table.lake.whole(table.name), seen)
        wanted = dict.fromkeys([*self.keys, *(one.column for one, _ in self.bound.fields)])
        hashed = rows.select(*map(quoted, wanted), of_key.alias(name))
        return hashed.join(broadcast(hashes), name, "left_semi").drop(name)

    def marked(self, good: DataFrame, found: Found, order: Sequence[Column], flag: str) -> DataFrame:
        """The rows with a flag on those whose key came before; the first in the order wins within the batch."""
        first = Window.partitionBy(_KEY).orderBy(*order)
        ranked = good.withColumn(_KEY, self._key()).withColumn(_RANK, row_number().over(first))
        if found.held is None:
            return ranked.withColumn(flag, col(_RANK) > 1)
        known = found.held.select(self._key().alias(_KEY)).distinct().withColumn(_KNOWN, lit(True))
        joined = ranked.join(broadcast(known) if found.few else known, _KEY, "left")
        return joined.withColumn(flag, (col(_RANK) > 1) | col(_KNOWN).isNotNull())

    def _perhaps_there(self, asked: Sequence[Row], directory: KeyDirectory) -> tuple[list[Row], list[int]]:
        noted = "entry" if self._same_day else "hash"
        there, days = directory.find([one[noted] for one in asked], any_day=not self._same_day)
        return [one for one, found in zip(asked, there, strict=True) if found], days

    @property
    def _same_day(self) -> bool:
        """Whether rows with a key are duplicates only on the same day of the column that the directory notes."""
        day = self.addresses.day if self.addresses else None
        within = any(one.column == day and one.transform in _WITHIN_A_DAY for one, _ in self.bound.fields)
        return within or day in self.keys

    def _key(self) -> Column:
        """A struct, because in it a period without a value equals another one."""
        return struct(*map(quoted, self.keys), *self.bound.periods())
