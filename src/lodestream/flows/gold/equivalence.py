# ruff: noqa: S608 - the SQL is the plan's
"""Spark is the judge: a plan is tried on generated rows before it may keep a table.

The analysis proves that the pieces of a plan together equal the user's query. A proof can be wrong, so each plan is
carried out once on a few rows, with rows that come and go, and its result compared with the query itself.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyarrow import ArrowException
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

from lodestream.flows.gold.fold import nested
from lodestream.flows.gold.specimens import Specimens, rows_as_frame
from lodestream.flows.tuning import SMALL_BATCHES
from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.plan import (
    BOTH,
    DELTA,
    FOLDED,
    GOLD,
    KEYS,
    STATE,
    STATE_COLUMN,
    WEIGHT,
    GoldPlan,
    feed_view,
    now_view,
)

log = logging.getLogger(__name__)

# What is tried, in this order: values of the query, then texts that are numbers, then nothing but nulls and few values.
_MANNERS = ("rich", "digits", "tame")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` is None when the plan may be used; `tried` says on how many generated inputs it held."""

    reason: str | None
    tried: int = 0


def judge(spark: SparkSession, plan: GoldPlan, query: str, shapes: Mapping[str, StructType]) -> Verdict:
    """Compare the plan with the query (the user's own text over the `now` views) on generated rows."""
    if plan.strategy == "full":
        return Verdict(None)
    with _quick(spark):
        for manner in _MANNERS:
            try:
                world = _World(spark, plan, query, Specimens(shapes, query, manner))
                world.show(after=True)
            except (PySparkException, ArrowException, TypeError, ValueError) as error:
                log.info("plan.untried why=%r", str(error).splitlines()[0])
                return Verdict(None)  # a type that no rows can be made of
            try:
                fresh = world.fresh()
            except PySparkException:
                continue  # the query itself refuses such rows: others may do
            if world.empty and manner != _MANNERS[-1]:
                continue  # nothing passes its filters
            return Verdict(world.difference(fresh) or _with_lookups(spark, plan, query, world.specimens), 1)
    return Verdict(None)


def _with_lookups(spark: SparkSession, plan: GoldPlan, query: str, specimens: Specimens) -> str | None:
    """The same once more with changed lookups, which take another way through the plan."""
    if "affected" not in plan.on_lookup_change.values():
        return None
    world = _World(spark, plan, query, specimens, lookups=True)
    world.show(after=True)
    try:
        return world.difference(world.fresh())
    except PySparkException:
        return None  # the query refuses these rows


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
        self, spark: SparkSession, plan: GoldPlan, query: str, specimens: Specimens, *, lookups: bool = False
    ) -> None:
        self.specimens = specimens
        self._spark = spark
        self._plan = plan
        self._query = query
        followed = {None, "affected"} if lookups else {None}
        self._changed = [name for name in plan.inputs if plan.on_lookup_change.get(name) in followed]
        self._held: Rows = Counter()

    def fresh(self) -> DataFrame:
        """The query over the inputs as they are; raises when it cannot be computed."""
        found = self._spark.sql(self._query)
        self._held = _counted(found)
        return found

    @property
    def empty(self) -> bool:
        return not self._held

    def difference(self, fresh: DataFrame) -> str | None:
        try:
            kept = self._kept()
            wanted, given = _columns(fresh), _columns(kept)
            if wanted != given:
                return f"its columns would be {_listed(given)}, the query's are {_listed(wanted)}"
            rows = _counted(kept)
        except PySparkException as error:
            return f"Spark refuses the statement that follows changes: {str(error).splitlines()[0]}"
        if rows != self._held and self._settled():
            lost, invented = self._held - rows, rows - self._held
            return f"on generated rows it kept {_sample(invented)} where the query gives {_sample(lost)}"
        return None

    def _settled(self) -> bool:
        """Whether the rows alone decide the answer: `first(x)` and ties depend on their order as well."""
        self.show(after=True, backwards=True)
        return _counted(self._spark.sql(self._query)) == self._held

    def show(self, *, after: bool, backwards: bool = False) -> None:
        for name in self._plan.inputs:
            rows = self.specimens.after[name] if after and name in self._changed else self.specimens.before[name]
            rows = rows[::-1] if backwards else rows
            schema = self.specimens.shapes[name]
            rows_as_frame(self._spark, rows, schema).createOrReplaceTempView(now_view(name))
            weighted = self.specimens.changes[name] if name in self._changed else []
            shape = StructType([*schema.fields, StructField(WEIGHT, IntegerType())])
            rows_as_frame(self._spark, weighted, shape).createOrReplaceTempView(feed_view(name))

    def _kept(self) -> DataFrame:
        plan, spark = self._plan, self._spark
        self.show(after=False)
        spark.sql(plan.full_sql).createOrReplaceTempView(GOLD)
        self.show(after=True)
        lookups = [name for name in self._changed if name in plan.on_lookup_change]
        if plan.strategy == "affected" or lookups:
            return self._shown(self._replaced())
        steps = ((STATE, plan.unpack_sql), (DELTA, plan.delta_sql), (BOTH, plan.both_sql), (FOLDED, plan.fold_sql))
        return self._shown(spark.sql(nested(steps, plan.store_sql)))

    def _replaced(self) -> DataFrame:
        plan, spark = self._plan, self._spark
        spark.sql(" UNION ".join(plan.affected_sql[name] for name in self._changed)).createOrReplaceTempView(KEYS)
        same = " AND ".join(f"{GOLD}.{quoted(key)} <=> {KEYS}.{quoted(key)}" for key in plan.affected_keys)
        kept = spark.sql(f"SELECT {GOLD}.* FROM {GOLD} LEFT ANTI JOIN {KEYS} ON {same}")
        return kept.unionByName(spark.sql(plan.recompute_sql or ""))

    def _shown(self, stored: DataFrame) -> DataFrame:
        if self._plan.state_home != "table":
            return stored.drop(STATE_COLUMN)
        stored.createOrReplaceTempView(GOLD)
        return self._spark.sql(f"WITH {FOLDED} AS ({self._plan.unpack_sql}) {self._plan.present_sql}")


Rows = Counter[str]


def _columns(frame: DataFrame) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in frame.schema]


def _counted(frame: DataFrame) -> Rows:
    return Counter(repr([_plain(value) for value in row]) for row in frame.collect())


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


def _sample(rows: Rows) -> str:
    return ", ".join(list(rows)[:2]) or "nothing"
