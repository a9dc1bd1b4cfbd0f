"""Two sets of rows compared as multisets, in Spark: what is only in one, and which rows of a key differ.

Grouping needs no memory for a whole table, and null is a value like any other. Rows that are equal, which is nearly all
of them, are gone after the first step; only the rest is looked at more closely.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql.functions import (
    abs as magnitude,
)
from pyspark.sql.functions import (
    array_repeat,
    broadcast,
    coalesce,
    col,
    count_if,
    explode,
    first,
    greatest,
    lit,
    row_number,
    signum,
    struct,
    when,
    xxhash64,
)
from pyspark.sql.functions import sum as total
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructType,
)

from lodestream.recovery.verify.result import Differences, Kind, Sample
from lodestream.recovery.verify.values import has_floats, same, shown, without_floats
from lodestream.tables.distinct import counted
from lodestream.tables.find import same_again, set_aside
from lodestream.tables.groupable import groupable

_SIDE, _STORED, _FRESH = "_side", "_stored", "_fresh"
_MOST_SAMPLES = 5
# Up to this many rows that differ are kept aside while they are looked at; more are computed again at each step.
_MOST_KEPT = 1_000_000
# Values of these types survive the way through Python unchanged, so a filter on them loses no row.
_EXACT = (IntegerType, LongType, StringType, DateType, DecimalType)
_MOST_LISTED = 200
_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Sampling:
    """Compare this many keys, chosen by the seed."""

    keys: int
    seed: int


class Comparison:
    """`stored` and `fresh` have the same columns in the same order; `keys` are some of them, or none."""

    def __init__(self, stored: DataFrame, fresh: DataFrame, keys: Sequence[str], hide: Collection[str] = ()) -> None:
        self._names = stored.columns
        self._hide = hide
        self._stored, self._fresh = _plain(stored), _plain(fresh)
        self._kinds = [one.dataType for one in self._stored.schema]
        self._columns = [f"c{n}" for n in range(len(self._names))]
        self._keys = [f"c{self._names.index(key)}" for key in keys]
        self.sampled: int | None = None

    def narrow(self, sampling: Sampling) -> None:
        """Look at some keys only, taken from both sides; without keys, at some rows."""
        by = [col(key) for key in self._keys] or self._exactly()
        named = [one.alias(f"k{n}") for n, one in enumerate(by)]
        both = self._stored.select(*named).unionAll(self._fresh.select(*named)).distinct()
        drawn = [col(name) for name in both.columns]
        chosen = set_aside(both.orderBy(xxhash64(lit(sampling.seed), *drawn), *drawn).limit(sampling.keys))
        listed = None
        try:
            rows = chosen.collect()
            self.sampled = len(rows)
            listed = self._listed(rows) if self._keys else None
        except (ValueError, OverflowError):  # a date that Python has no value for
            self.sampled = chosen.count()
        matching = [one.eqNullSafe(col(name)) for one, name in zip(by, both.columns, strict=True)]

        def kept(side: DataFrame) -> DataFrame:
            # The list says nothing new, but files can be skipped by it.
            few = side if listed is None else side.where(listed)
            return few.join(broadcast(chosen), matching, "left_semi")

        self._stored, self._fresh = kept(self._stored), kept(self._fresh)

    def differences(self) -> Differences:
        net = self._net()
        found = net.agg(
            *(coalesce(total(count), lit(0)).alias(name) for name, count in (
                ("stored", col(_STORED)),
                ("fresh", col(_FRESH)),
                ("added", greatest(col(_STORED) - col(_FRESH), lit(0))),
                ("missing", greatest(col(_FRESH) - col(_STORED), lit(0))),
            ))
        ).collect()[0]  # fmt: skip
        if not found["added"] and not found["missing"]:
            return Differences(found["stored"], found["fresh"])
        uneven = net.where(col(_STORED) != col(_FRESH))
        if found["added"] + found["missing"] <= _MOST_KEPT:
            uneven = set_aside(uneven)
        return self._told(self._matched(uneven), found["stored"], found["fresh"])

    def _net(self) -> DataFrame:
        """How often each distinct row is there, on either side."""
        both = self._stored.withColumn(_SIDE, lit(1)).unionAll(self._fresh.withColumn(_SIDE, lit(-1)))
        counts = (count_if(col(_SIDE) > 0).alias(_STORED), count_if(col(_SIDE) < 0).alias(_FRESH))
        return counted(both, self._columns, *counts)

    def _matched(self, uneven: DataFrame) -> DataFrame:
        """The rows that differ, as `_stored` and `_fresh`: both where a key has them on both sides."""
        more = col(_STORED) - col(_FRESH)
        copies = array_repeat(lit(True), magnitude(more).cast("int"))
        rows = uneven.select(*self._columns, signum(more).cast("int").alias(_SIDE), explode(copies).alias("_copy"))
        if any(map(has_floats, self._kinds)):
            matched = self._paired(rows, self._exactly())
            rows = self._apart(matched.where(~coalesce(self._all_same(), lit(False))))
        if self._keys:
            return self._paired(rows, [col(key) for key in self._keys])
        return rows.select(self._of_side(1).alias(_STORED), self._of_side(-1).alias(_FRESH))

    def _paired(self, rows: DataFrame, by: Sequence[Column]) -> DataFrame:
        order = Window.partitionBy(*by, col(_SIDE)).orderBy(*self._columns)
        named = [one.alias(f"k{n}") for n, one in enumerate(by)]
        return (
            rows.withColumn("_n", row_number().over(order))
            .groupBy(*named, col("_n"))
            .agg(
                first(self._of_side(1), ignorenulls=True).alias(_STORED),
                first(self._of_side(-1), ignorenulls=True).alias(_FRESH),
            )
        )

    def _apart(self, pairs: DataFrame) -> DataFrame:
        sides = [
            pairs.where(col(name).isNotNull()).select(f"{name}.*", lit(side).alias(_SIDE))
            for name, side in ((_STORED, 1), (_FRESH, -1))
        ]
        return sides[0].unionAll(sides[1])

    def _of_side(self, side: int) -> Column:
        return when(col(_SIDE) == side, struct(*self._columns))

    def _exactly(self) -> list[Column]:
        return [without_floats(col(name), kind) for name, kind in zip(self._columns, self._kinds, strict=True)]

    def _same(self, number: int) -> Column:
        name = self._columns[number]
        return same(col(_STORED)[name], col(_FRESH)[name], self._kinds[number])

    def _all_same(self) -> Column:
        alike = reduce(Column.__and__, (self._same(number) for number in range(len(self._columns))))
        return col(_STORED).isNotNull() & col(_FRESH).isNotNull() & alike

    def _told(self, pairs: DataFrame, stored: int, fresh: int) -> Differences:
        kinds = {
            "added": col(_FRESH).isNull(),
            "missing": col(_STORED).isNull(),
            "changed": col(_STORED).isNotNull() & col(_FRESH).isNotNull(),
        }
        counts = [count_if(held).alias(kind) for kind, held in kinds.items()]
        differing = [count_if(kinds["changed"] & ~self._same(n)).alias(f"d{n}") for n in range(len(self._names))]
        found = pairs.agg(*counts, *differing).collect()[0]
        samples: list[Sample] = []
        for kind in ("added", "missing", "changed"):
            if found[kind]:
                samples += self._samples(pairs.where(kinds[kind]), kind)
        columns = {name: found[f"d{n}"] for n, name in enumerate(self._names) if found[f"d{n}"]}
        return Differences(stored, fresh, found["added"], found["missing"], found["changed"], columns, tuple(samples))

    def _samples(self, pairs: DataFrame, kind: Kind) -> list[Sample]:
        few = pairs.orderBy(coalesce(col(_STORED), col(_FRESH))).limit(_MOST_SAMPLES)
        texts = [self._text(side, n).alias(f"{side}{n}") for side in (_STORED, _FRESH) for n in range(len(self._names))]
        differs = [(~self._same(n)).alias(f"d{n}") for n in range(len(self._names))]
        return [self._sample(row, kind) for row in few.select(*texts, *differs).collect()]

    def _text(self, side: str, number: int) -> Column:
        value = col(side)[self._columns[number]]
        if self._names[number] in self._hide:
            return when(value.isNotNull(), lit(_HIDDEN))
        return shown(value, self._kinds[number])

    def _sample(self, row: Row, kind: Kind) -> Sample:
        def side(name: str) -> dict[str, str | None]:
            return {column: row[f"{name}{n}"] for n, column in enumerate(self._names)}

        changed = tuple(column for n, column in enumerate(self._names) if row[f"d{n}"]) if kind == "changed" else ()
        stored, fresh = kind != "missing", kind != "added"
        return Sample(kind, side(_STORED) if stored else None, side(_FRESH) if fresh else None, changed)

    def _listed(self, rows: Sequence[Row]) -> Column | None:
        """A condition that every row with a chosen key meets."""
        held: list[Column] = []
        for number, key in enumerate(self._keys):
            values = {row[number] for row in rows}
            known = [value for value in values if value is not None]
            if not isinstance(self._kind_of(key), _EXACT) or len(values) > _MOST_LISTED or not same_again(known):
                continue
            among = col(key).isin(known) if known else lit(False)
            held.append(among | col(key).isNull() if None in values else among)
        return reduce(Column.__and__, held) if held else None

    def _kind_of(self, column: str) -> DataType:
        return self._kinds[self._columns.index(column)]


def _plain(rows: DataFrame) -> DataFrame:
    """Columns c0, c1, ... in the form that rows are grouped by; names may be anything."""
    schema: StructType = rows.schema
    return rows.toDF(*[f"c{n}" for n in range(len(schema))]).select(
        *[groupable(col(f"c{n}"), one.dataType).alias(f"c{n}") for n, one in enumerate(schema)]
    )
