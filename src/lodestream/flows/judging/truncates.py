"""A truncated source: everything that happened before the truncate is gone, whenever it is told.

A truncate names no key, so it is kept as a mark without one. Changes that stand below the last one, the floor, lose,
also changes of keys that nobody has heard of yet, because the partitions of a topic are read in any order. A table that
keeps versions needs all of them: each truncate ends the versions of its own time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import broadcast, col, count, count_if, lit, max_by, size
from pyspark.sql.functions import max as highest

from lodestream.contracts.quoting import name as quoted
from lodestream.names import FILTERED, ORDER, ORDER_KEY, REASONS, WEIGHT
from lodestream.pipeline.decoders import TRUNCATE

_HERE = "_lode_x_here"


@dataclass(frozen=True, slots=True)
class Floor:
    """`order_keys` has a row for each truncate that counts; `fresh` are those of this batch, if they change anything.

    `rows` is how many there are.
    """

    order_keys: DataFrame
    fresh: DataFrame | None
    rows: int

    @property
    def moved(self) -> bool:
        return self.fresh is not None

    def under(self, changes: DataFrame, table: DataFrame | None, keys: Sequence[str]) -> DataFrame:
        """The changes, and deletes at the floor for each of their keys; of all keys in the table, when it moved."""
        named = changes.select(*map(quoted, keys))
        if self.moved and table is not None:
            named = named.unionAll(table.select(*map(quoted, keys)))
        deleted = named.distinct().crossJoin(broadcast(self.order_keys))
        columns = [
            (col(quoted(field.name)) if field.name in (*keys, ORDER_KEY) else lit(None).cast(field.dataType)).alias(
                field.name
            )
            for field in changes.schema
        ]
        return changes.unionByName(deleted.select(*columns))

    def mark(self, feed_rows: DataFrame) -> DataFrame:
        """The feed rows, and the truncates of this batch among them."""
        if self.fresh is None:
            return feed_rows
        own: dict[str, Column] = {field.name: lit(None).cast(field.dataType) for field in feed_rows.schema}
        own |= {ORDER: col(ORDER_KEY), WEIGHT: lit(0)}
        return feed_rows.unionByName(self.fresh.select(*[column.alias(name) for name, column in own.items()]))


def floor_of(judged: DataFrame, marks: DataFrame | None, keys: Sequence[str], *, every: bool) -> Floor | None:
    """The truncates that the batch and the marks tell of: the last one, or every one."""
    counted = (col(FILTERED) == TRUNCATE) & (size(REASONS) == 0)
    both = judged.where(counted).select(ORDER_KEY, lit(True).alias(_HERE))
    if marks is not None:
        keyless = reduce(and_, [col(quoted(key)).isNull() for key in keys])
        both = both.unionAll(marks.where(keyless).select(col(ORDER).alias(ORDER_KEY), lit(False).alias(_HERE)))
    grouped = both.groupBy(ORDER_KEY).agg(highest(_HERE).alias(_HERE))
    # Places are compared here and not in Python, to which two moments of the hour that comes twice may look the same.
    here, last_here = count_if(_HERE).alias("here"), max_by(_HERE, ORDER_KEY).alias("last_here")
    told = grouped.agg(count(lit(1)).alias("order_keys"), here, last_here).collect()[0]
    if not told["order_keys"]:
        return None
    if every:
        fresh = grouped.where(_HERE).select(ORDER_KEY) if told["here"] else None
        return Floor(grouped.select(ORDER_KEY), fresh, told["order_keys"])
    last = both.agg(highest(ORDER_KEY).alias(ORDER_KEY))
    # An older truncate than the one that is known takes nothing away.
    return Floor(last, last if told["last_here"] else None, 1)
