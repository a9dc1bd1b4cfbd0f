# ruff: noqa: S608 - the SQL is the plan's
"""Spark is the judge: a plan is tried on generated rows before it may keep a table.

The analysis proves that the pieces of a plan together equal the user's query. A proof can be wrong, so each plan is
carried out once on a few rows, with rows that come and go, and its result compared with the query itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

from lodestream.flows.context import SMALL_BATCHES
from lodestream.flows.gold.fold import nested
from lodestream.flows.gold.specimens import Specimens, rows_as_frame
from lodestream.names import WEIGHT
from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.plan import (
    BOTH,
    DELTA,
    FOLDED,
    GOLD,
    KEYS,
    STORED,
    GoldPlan,
    feed_view,
    now_view,
)
from lodestream.tables.hidden import shown
from lodestream.tables.stored import as_stored, in_stored_types

# What is tried, in this order, until rows pass through the query: values of the query itself, with and without numbers
# that are none; texts that are numbers; few values; texts that are dates; numbers far from those of the query.
MANNERS = ("odd", "rich", "digits", "tame", "dates", "large")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` is None when the plan may be used; `tried` says on how many generated inputs it was carried out."""

    reason: str | None
    tried: int = 0


def judge(spark: SparkSession, plan: GoldPlan, query: str, shapes: Mapping[str, StructType]) -> Verdict:
    """Compare the plan with the query (the user's own text over the `now` views) on generated rows."""
    if plan.strategy == "full":
        return Verdict(None)
    emptied, refusal = None, ""
    with _quick(spark):
        for manner in MANNERS:
            try:
                trial = _tried(spark, plan, query, Specimens(shapes, query, manner))
            except (PySparkException, ValueError, OverflowError) as error:
                # The query itself refuses such rows, or gives dates that Python has no value for: others may do.
                refusal = str(error).splitlines()[0]
                continue
            if not trial.empty:
                return Verdict(trial.difference, 1)
            emptied = emptied or trial
    if emptied is not None:  # nothing passes its filters
        return Verdict(emptied.difference, 1)
    return Verdict(f"it could not be tried: the query refuses every kind of generated rows ({refusal})")


@dataclass(frozen=True, slots=True)
class _Trial:
    difference: str | None
    empty: bool


def _tried(spark: SparkSession, plan: GoldPlan, query: str, specimens: Specimens) -> _Trial:
    """Raises what Spark says when the query itself cannot be computed on these rows."""
    streams = [name for name in plan.inputs if name not in plan.on_lookup_change]
    followed = [name for name in plan.inputs if plan.on_lookup_change.get(name, "affected") == "affected"]
    world = _World(spark, plan, query, specimens, streams)
    difference = world.difference()
    # Once more with changed lookups, which take another way through the plan, and with each change by itself: among
    # others, keys that it misses are found by way of theirs.
    others = [followed, *([name] for name in followed)]
    for changed in others:
        if difference is None and changed != streams:
            difference = _World(spark, plan, query, specimens, changed).difference()
    return _Trial(difference, world.empty)


@contextmanager
def _quick(spark: SparkSession) -> Iterator[None]:
    """A few rows run interpreted, in one partition, as small batches do."""
    before = {key: spark.conf.get(key) or "" for key in SMALL_BATCHES}
    try:
        for key, value in SMALL_BATCHES.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


class _World:
    """One set of inputs, as it was, as it is, and what the plan makes of the difference."""

    def __init__(
        self, spark: SparkSession, plan: GoldPlan, query: str, specimens: Specimens, changed: Sequence[str]
    ) -> None:
        self.specimens = specimens
        self._spark = spark
        self._plan = plan
        self._query = query
        self._changed = changed
        self._held: list[Values] = []

    @property
    def empty(self) -> bool:
        return not self._held

    def difference(self) -> str | None:
        self.show(after=True)
        fresh = self._spark.sql(self._query)
        self._held = _plain_rows(fresh)
        try:
            kept = self._kept()
            wanted, given = _columns(fresh), _columns(kept)
            if wanted != given:
                return f"its columns would be {_listed(given)}, the query's are {_listed(wanted)}"
            rows = _plain_rows(kept)
        except PySparkException as error:
            return f"Spark refuses the statement that follows changes: {str(error).splitlines()[0]}"
        if Counter(rows) == Counter(self._held):
            return None
        decided = self._decided(fresh.columns)
        one, other = _projected(rows, decided), _projected(self._held, decided)
        if one == other:
            return None
        return f"on generated rows it kept {_sample(one - other)} where the query gives {_sample(other - one)}"

    def _decided(self, columns: Sequence[str]) -> list[int]:
        """The columns that the rows alone decide: `first(x)` and ties depend on their order as well.

        One that comes out differently beside those before it, when the rows come in another order, is none of them.
        """
        others: list[list[Values]] = []
        for order in ("backwards", "mixed"):
            self.show(after=True, order=order)
            others.append(_plain_rows(self._spark.sql(self._query)))
        decided: list[int] = []
        keys = {*self._plan.keys, *self._plan.affected_keys}
        for number in sorted(range(len(columns)), key=lambda n: columns[n] not in keys):
            some = [*decided, number]
            if all(_projected(other, some) == _projected(self._held, some) for other in others):
                decided = some
        return sorted(decided)

    def show(self, *, after: bool, order: str = "") -> None:
        for name in self._plan.inputs:
            rows = self.specimens.after[name] if after and name in self._changed else self.specimens.before[name]
            rows = rows[::-1] if order == "backwards" else [*rows[1::2], *rows[::2]] if order == "mixed" else rows
            schema = self.specimens.shapes[name]
            rows_as_frame(self._spark, rows, schema).createOrReplaceTempView(now_view(name))
            weighted = self.specimens.changes[name] if name in self._changed else []
            shape = StructType([*schema.fields, StructField(WEIGHT, IntegerType())])
            rows_as_frame(self._spark, weighted, shape).createOrReplaceTempView(feed_view(name))

    def _kept(self) -> DataFrame:
        plan, spark = self._plan, self._spark
        self.show(after=False)
        in_stored_types(spark.sql(plan.full_sql)).createOrReplaceTempView(GOLD)
        self.show(after=True)
        lookups = [name for name in self._changed if name in plan.on_lookup_change]
        if plan.strategy == "affected" or lookups:
            return self._shown(self._replaced())
        steps = ((STORED, plan.unpack_sql), (DELTA, plan.delta_sql), (BOTH, plan.both_sql), (FOLDED, plan.fold_sql))
        return self._shown(spark.sql(nested(steps, plan.store_sql)))

    def _replaced(self) -> DataFrame:
        plan, spark = self._plan, self._spark
        spark.sql(" UNION ".join(plan.affected_sql[name] for name in self._changed)).createOrReplaceTempView(KEYS)
        same = " AND ".join(f"{GOLD}.{quoted(key)} <=> {KEYS}.{quoted(key)}" for key in plan.affected_keys)
        kept = spark.sql(f"SELECT {GOLD}.* FROM {GOLD} LEFT ANTI JOIN {KEYS} ON {same}")
        return kept.unionByName(spark.sql(plan.recompute_sql or ""))

    def _shown(self, stored: DataFrame) -> DataFrame:
        if self._plan.state_home != "table":
            return shown(stored)
        stored.createOrReplaceTempView(GOLD)
        return self._spark.sql(f"WITH {FOLDED} AS ({self._plan.unpack_sql}) {self._plan.present_sql}")


# A row as the texts of its values.
Values = tuple[str, ...]


def _columns(frame: DataFrame) -> list[tuple[str, str]]:
    return [(field.name, as_stored(field.dataType).simpleString()) for field in frame.schema]


def _plain_rows(frame: DataFrame) -> list[Values]:
    return [tuple(repr(_plain(value)) for value in row) for row in frame.collect()]


def _projected(rows: Iterable[Values], columns: Sequence[int]) -> Counter[Values]:
    return Counter(tuple(row[n] for n in columns) for row in rows)


def _plain(value: Any) -> Any:
    """Sums of doubles depend on the order: compare what does not."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return sorted((repr(_plain(key)), repr(_plain(one))) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def _listed(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns)


def _sample(rows: Iterable[Values]) -> str:
    return ", ".join(f"[{', '.join(row)}]" for row in list(rows)[:2]) or "nothing"
