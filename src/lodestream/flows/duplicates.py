"""The first row of each key stays: which rows of a batch have come before, with the batch or in the table.

A key counts once within a partition of time or of a plain column, and once in the whole of a table without such: which
row is a duplicate then does not depend on how the input was cut into batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql.functions import broadcast, col, collect_set, lit, row_number, struct, when

from lodestream.contracts.quoting import name as quoted
from lodestream.flows.keyed.directory import Addresses, KeyDirectory
from lodestream.flows.shape import only_touched, period
from lodestream.flows.tuning import SMALL
from lodestream.pipeline import Partition
from lodestream.tables.find import among, quick_look

if TYPE_CHECKING:
    from lodestream.flows.silver import SilverFlow

_ASKED, _KEY, _RANK, _KNOWN = "asked", "_key", "_rank", "_known"
# A filter for each of more days than this is slower than none.
_MOST_DAYS = 62


@dataclass(frozen=True, slots=True)
class KeySearch:
    """What a batch wants to know of its keys; `addresses` are how the table's directory notes them."""

    keys: tuple[str, ...]
    within: Sequence[Partition]
    addresses: Addresses | None

    def columns(self, rows: int, claiming: Column) -> list[Column]:
        """Aggregates that list the keys of a batch, when they are few."""
        if rows > SMALL:
            return []
        noted = [self.addresses.hash().alias("hash"), self.addresses.entry().alias("entry")] if self.addresses else []
        return [collect_set(when(claiming, struct(col(quoted(self.keys[0])).alias("first"), *noted))).alias(_ASKED)]

    def entries(self, seen: Row) -> list[int] | None:
        """The batch's keys as the directory notes them; None when they are not listed."""
        return [one["entry"] for one in seen[_ASKED]] if self.addresses and _ASKED in seen else None

    def all_differ(self, seen: Row, rows: int) -> bool:
        """Whether the rows surely have a key each."""
        return self.addresses is not None and _ASKED in seen and len({one["hash"] for one in seen[_ASKED]}) == rows

    def stored(self, flow: SilverFlow, seen: Row, directory: KeyDirectory | None) -> DataFrame | None:
        """The table's rows that may have a key of the batch; None when there are none."""
        firsts = [one["first"] for one in seen[_ASKED]] if _ASKED in seen else []
        days: list[int] = []
        if directory is not None and firsts:
            there, days = directory.find([one["hash"] for one in seen[_ASKED]])
            firsts = [first for first, found in zip(firsts, there, strict=True) if found]
            if not firsts:
                return None
        rows = only_touched(self._look(flow, few=bool(firsts)), self.within, seen)
        if directory is not None and 0 < len(days) <= _MOST_DAYS:
            rows = directory.addresses.on(rows, days)
        listed = among(quoted(self.keys[0]), list(set(firsts)), rows.schema[self.keys[0]].dataType)
        return rows.where(listed) if listed else rows

    def marked(self, good: DataFrame, stored: DataFrame | None, order: Sequence[Column], flag: str) -> DataFrame:
        """The rows with a flag on those whose key came before; the first position wins within the batch."""
        keyed = good.withColumn(_KEY, self._key())
        first = Window.partitionBy(_KEY).orderBy(*(order or [lit(1)]))
        again = keyed.withColumn(_RANK, row_number().over(first))
        if stored is None:
            return again.withColumn(flag, col(_RANK) > 1)
        held = stored.select(self._key().alias(_KEY)).join(broadcast(keyed.select(_KEY)), _KEY, "left_semi")
        known = broadcast(held.distinct().withColumn(_KNOWN, lit(True)))
        return again.join(known, _KEY, "left").withColumn(flag, (col(_RANK) > 1) | col(_KNOWN).isNotNull())

    def _key(self) -> Column:
        """A struct, because in it a partition without a value equals another one."""
        return struct(*map(quoted, self.keys), *[period(one).alias(f"_{one.column}") for one in self.within])

    def _look(self, flow: SilverFlow, *, few: bool) -> DataFrame:
        head = flow.writer.store.head()
        cores = flow.lake.spark.sparkContext.defaultParallelism
        return flow.lake.whole(flow.name, options=quick_look(head, cores) if few and head else None)
