"""Any valid query through the real flows on real Iceberg: Gold equals the user's own text, run by Spark, to the type.

Many Gold tables share four Silver tables, which go through three batches of inserts, updates and deletes.
`LODE_QUERIES=500 LODE_SEED=7` makes it longer; `LODE_SHRINK=60` spends so many seconds on making a failure small.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from gold_line import Gold, Silver, declared
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from query_model import Query
from query_regressions import REGRESSIONS, SPARK_ONLY
from query_shrink import smaller
from query_spark import spark_query
from query_tables import INFOS, History, history

from lodestream.errors import LodeError
from lodestream.pipeline.gold import analyse, query_inputs
from lodestream.tables.lake import Lake as Tables

QUERIES = int(os.environ.get("LODE_QUERIES", "60"))
SEED = int(os.environ.get("LODE_SEED", "0")) or random.SystemRandom().randrange(1, 10**9)
SHRINK = float(os.environ.get("LODE_SHRINK", "0"))
BATCHES = 3
AT_ONCE = 2  # flows run side by side in a driver, too


@dataclass
class Line:
    """Four Silver tables with one history, and the Gold tables over them."""

    spark: SparkSession
    catalog: str
    given: History
    silver: dict[str, Silver] = field(default_factory=dict)
    judge: SparkSession = field(init=False)

    def __post_init__(self) -> None:
        tables = Tables(self.spark.newSession(), self.catalog)
        self.silver = {name: Silver(tables, info) for name, info in INFOS.items()}
        self.judge = self.spark.newSession()
        self.judge.conf.set("spark.sql.session.timeZone", "UTC")
        self.judge.sql(f"USE {self.catalog}")

    def become(self, batch: int) -> None:
        for name, silver in self.silver.items():
            if batch == 0 or self.given.feed(batch, name):
                silver.become(self.given.states[batch][name])

    def gold(self, name: str, sql: str) -> Gold:
        inputs = {table: INFOS[table].keys for table in query_inputs(sql)}
        lookups = tuple(table for table in inputs if INFOS[table].lookup and len(inputs) > 1)
        small = 0 if name.endswith("0") else None  # as if it were too large to be written as a whole
        given = {} if small is None else {"small": small}
        return Gold(self.spark, self.catalog, declared(name, sql), inputs, lookups=lookups, **given)

    def true(self, sql: str) -> DataFrame:
        """The user's text, untouched, over the tables themselves."""
        return self.judge.sql(sql)


@pytest.fixture
def line(lake: Any) -> Line:
    states = history(random.Random(f"spark {SEED}"), batches=BATCHES)
    return Line(lake.spark, lake.config.catalog.name, states)


def follow(line: Line, queries: dict[str, str]) -> dict[str, str]:
    """Keep one Gold table per query through all batches; what went wrong, by name."""
    wrong: dict[str, str] = {}
    golds: dict[str, Gold] = {}
    for batch in range(BATCHES):
        line.become(batch)

        def step(name: str, batch: int = batch) -> None:
            if name in wrong:
                return
            try:
                if batch == 0:
                    golds[name] = line.gold(name, queries[name])
                golds[name].step()
                if batch:
                    difference = compared(golds[name].rows, line.true(queries[name]))
                    if difference:
                        wrong[name] = f"batch {batch}: {difference}"
            except (LodeError, PySparkException, AssertionError, LookupError) as error:
                wrong[name] = f"batch {batch}: {type(error).__name__}: {str(error)[:400]}"

        with ThreadPoolExecutor(AT_ONCE) as workers:
            list(workers.map(step, queries))
    return wrong


def compared(kept: DataFrame, true: DataFrame) -> str:
    ours, theirs = ([(f.name.lower(), f.dataType.simpleString()) for f in frame.schema] for frame in (kept, true))
    if ours != theirs:
        return f"columns {ours} instead of {theirs}"
    one, other = (Counter(map(_plain, frame.collect())) for frame in (kept, true))
    return "" if one == other else f"too many {dict(one - other)}, missing {dict(other - one)}"


def _plain(row: Row) -> str:
    """Sums of doubles differ in their last digits with the order of the rows."""
    return str([f"{value:.9g}" if isinstance(value, float) else str(value) for value in row])


def chosen() -> dict[str, tuple[str, Query]]:
    """Random queries, few of them recomputed as a whole: those tell least."""
    found: dict[str, tuple[str, Query]] = {}
    whole, number = 0, 0
    while len(found) < QUERIES:
        query = spark_query(SEED, number)
        number += 1
        strategy = _strategy(query.sql)
        whole += strategy == "full"
        if strategy != "full" or whole % 5 == 0:
            found[f"q{number}"] = (query.sql, query)
    return found


def _strategy(sql: str) -> str:
    try:
        return analyse(sql, INFOS).strategy
    except Exception:  # the flow will meet it again, and be blamed for it
        return "none"


@pytest.mark.timeout(1800)
def test_gold_equals_random_queries_through_the_real_flows(line: Line, keep: Callable[..., Any]) -> None:
    queries = chosen()
    wrong = follow(line, {name: sql for name, (sql, _) in queries.items()})
    assert not wrong, _said(line, wrong, queries, keep)


@pytest.mark.timeout(1800)
def test_gold_equals_what_once_went_wrong(line: Line) -> None:
    every = {**SPARK_ONLY, **REGRESSIONS}
    names = {f"r{number}": sql for number, sql in enumerate(every.values())}
    wrong = follow(line, names)
    assert not wrong, "\n".join(f"{names[name]}\n  {why}" for name, why in wrong.items()) + f"\nLODE_SEED={SEED}"


def test_random_queries_are_valid_spark_sql(line: Line) -> None:
    """The generator is worth nothing if Spark refuses what it writes."""
    line.become(0)
    refused = []
    for number in range(QUERIES, QUERIES * 3):
        sql = spark_query(SEED, number).sql
        try:
            line.true(sql)
        except PySparkException as error:
            refused.append(f"{sql}\n  {str(error)[:200]}")
    assert not refused, f"LODE_SEED={SEED}: {len(refused)} of {QUERIES * 2}\n" + "\n".join(refused[:5])


def _said(line: Line, wrong: dict[str, str], queries: dict[str, tuple[str, Query]], keep: Callable[..., Any]) -> str:
    lines = [f"LODE_SEED={SEED} LODE_QUERIES={QUERIES}: {len(wrong)} went wrong"]
    for name, why in sorted(wrong.items(), key=lambda one: len(queries[one[0]][0])):
        lines.append(f"{name}: {queries[name][0]}\n  {why}")
    if SHRINK:
        shortest = min(wrong, key=lambda name: len(queries[name][0]))
        lines.append("shrunk: " + shrunk(queries[shortest][1], line.given, keep))
    return "\n".join(lines)


def shrunk(query: Query, given: History, keep: Callable[..., Any]) -> str:
    """A smaller query that still goes wrong, tried with the pieces of its plan on Spark, without tables."""
    until = time.monotonic() + SHRINK
    best, again = query, True
    while again and time.monotonic() < until:
        again = False
        for candidate in sorted(smaller(best), key=lambda one: len(one.sql)):
            if time.monotonic() < until and len(candidate.sql) < len(best.sql) and _fails(candidate, given, keep):
                best, again = candidate, True
                break
    return best.sql


def _fails(query: Query, given: History, keep: Callable[..., Any]) -> bool:
    try:
        kept = keep(query.sql, {name: INFOS[name] for name in query_inputs(query.sql)})
        for state in given.states:
            kept.become(state)
            fresh = kept.recompute(query.sql)  # what Spark refuses is no query
            fresh.collect()
            try:
                if compared(kept.gold(), fresh):
                    return True
            except PySparkException:
                return True
    except Exception:  # no query, or another failure than the one that is sought
        return False
    return False
