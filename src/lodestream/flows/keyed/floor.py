"""A truncated source: everything that happened before the truncate is gone, whenever it is told.

A truncate names no key, so it is kept as a mark without one: the floor. Changes that stand below it lose, also changes
of keys that nobody has heard of yet, because the partitions of a topic are read in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import broadcast, col, lit
from pyspark.sql.functions import max as highest

from lodestream.contracts.quoting import name as quoted
from lodestream.flows.judge import FILTERED
from lodestream.flows.keyed.judge import PLACE, TRUNCATE
from lodestream.tables.feed import ORDER, WEIGHT


@dataclass(frozen=True, slots=True)
class Floor:
    """`place` is one row; `moved` when a truncate of this very batch put it there."""

    place: DataFrame
    moved: bool

    def under(self, changes: DataFrame, table: DataFrame | None, keys: Sequence[str]) -> DataFrame:
        """The changes, and a delete at the floor for each of their keys; of all keys in the table, when it moved."""
        named = changes.select(*map(quoted, keys))
        if self.moved and table is not None:
            named = named.unionAll(table.select(*map(quoted, keys)))
        deleted = named.distinct().crossJoin(broadcast(self.place))
        columns = [
            (col(quoted(field.name)) if field.name in (*keys, PLACE) else lit(None).cast(field.dataType)).alias(
                field.name
            )
            for field in changes.schema
        ]
        return changes.unionByName(deleted.select(*columns))

    def mark(self, feed_rows: DataFrame) -> DataFrame:
        """The feed rows, and the floor among them when it moved."""
        if not self.moved:
            return feed_rows
        own: dict[str, Column] = {field.name: lit(None).cast(field.dataType) for field in feed_rows.schema}
        own |= {ORDER: col(PLACE), WEIGHT: lit(0)}
        return feed_rows.unionByName(self.place.select(*[column.alias(name) for name, column in own.items()]))


def floor_of(judged: DataFrame, marks: DataFrame | None, keys: Sequence[str]) -> Floor | None:
    """The newest truncate that the batch or the marks tell of."""
    here = judged.where(col(FILTERED) == TRUNCATE).agg(highest(PLACE).alias(PLACE), lit(True).alias("here"))
    both = here
    if marks is not None:
        keyless = reduce(and_, [col(quoted(key)).isNull() for key in keys])
        both = here.unionAll(marks.where(keyless).agg(highest(ORDER).alias(PLACE), lit(False).alias("here")))
    known = {row["here"]: row[PLACE] for row in both.collect() if row[PLACE] is not None}
    if not known:
        return None
    return Floor(both.agg(highest(PLACE).alias(PLACE)), moved=True in known)
