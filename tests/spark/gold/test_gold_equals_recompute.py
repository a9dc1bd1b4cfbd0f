# ruff: noqa: E501 - a query reads best in one piece
"""Whatever changes arrive, in whatever batches: the maintained Gold table equals the user's query over the inputs.

The generated Spark SQL runs on DuckDB here, so that thousands of batches take seconds and an engine that Lodestream
did not write is the judge. tests/spark/gold repeats the essential part on Spark, digit by digit.
"""

from __future__ import annotations

import os
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from math import isclose
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_executor import PlanExecutor
from sqlglot import exp

from lodestream.pipeline.gold import GoldPlan, InputInfo, Strategy, analyse, feed_view, now_view

TRIPS = InputInfo(
    "silver.trips",
    {
        "id": "int",
        "zone": "int",
        "cat": "string",
        "fare": "decimal(10,2)",
        "qty": "int",
        "big": "bigint",
        "dist": "double",
        "ok": "boolean",
        "day": "date",
        "seen": "timestamp_ntz",
    },
    keys=("id",),
)
PAYS = InputInfo(
    "silver.pays", {"pay": "int", "trip": "int", "zone": "bigint", "amount": "decimal(8,2)"}, keys=("pay",)
)
ZONES = InputInfo(
    "silver.zones", {"location": "int", "borough": "string", "rate": "int"}, keys=("location",), lookup=True
)
INPUTS = {info.name: info for info in (TRIPS, PAYS, ZONES)}

DELTA = {
    "count and sum": "SELECT zone, count(*) AS n, sum(fare) AS s, sum(qty) AS q, sum(big) AS b FROM silver.trips GROUP BY zone",
    "null semantics": "SELECT cat, count(fare) AS c, sum(fare) AS s, avg(qty) AS a, avg(fare) AS f FROM silver.trips GROUP BY 1",
    "filtered": """SELECT zone, cat, count(*) FILTER (WHERE ok) AS n, sum(fare) FILTER (WHERE qty > 0) AS s,
        count_if(qty < 0) AS c, sum(CASE WHEN cat = 'a' THEN fare ELSE 0 END) AS a FROM silver.trips GROUP BY ALL""",
    "arithmetic over aggregates": """SELECT zone AS Z, round(avg(fare), 2) AS a, sum(fare) / count(*) AS per,
        sum(qty) + count(*) * 2 AS mix, coalesce(sum(big), 0) AS b, cast(sum(qty) AS string) AS t
        FROM silver.trips GROUP BY zone ORDER BY zone""",
    "expression keys": """SELECT coalesce(zone, 0) % 2 AS odd, concat(cat, '!') AS loud, count(*) AS n
        FROM silver.trips GROUP BY coalesce(zone, 0) % 2, cat""",
    "hidden group key": "SELECT cat, count(*) AS n, sum(fare) AS s FROM silver.trips GROUP BY cat, zone",
    "global": "SELECT count(*) AS n, sum(fare) AS s, avg(qty) AS a, count(cat) AS c FROM silver.trips",
    "global filtered": "SELECT 'all' AS label, count(*) AS n FROM silver.trips WHERE qty > 2",
    "having": "SELECT zone, count(*) AS n, sum(qty) AS q FROM silver.trips GROUP BY zone HAVING count(*) > 1 AND sum(qty) > 0",
    "distinct": "SELECT DISTINCT zone, cat FROM silver.trips WHERE ok",
    "booleans": "SELECT zone, bool_or(ok) AS some, bool_and(ok) AS every FROM silver.trips GROUP BY zone",
    "subquery and CTE": """-- a comment before
        WITH kept AS (SELECT id, zone, fare * 2 AS double FROM silver.trips WHERE qty >= 0),
        named AS (SELECT zone AS place, double FROM kept)
        /* and one within */
        SELECT place, -- and one after
        sum(double) AS s, count(*) AS n FROM named WHERE double > 1 GROUP BY place""",
    "lookup": """SELECT z.borough, count(*) AS n, sum(t.fare) AS s FROM silver.trips t
        JOIN silver.zones z ON t.zone = z.location GROUP BY z.borough""",
    "optional lookup": """SELECT t.day, z.borough, sum(t.fare * z.rate) AS s, count(z.rate) AS c FROM silver.trips t
        LEFT JOIN silver.zones z ON t.zone = z.location AND z.rate > 0 GROUP BY ALL""",
    "lookup in WHERE": """SELECT cat, count(*) AS n FROM silver.trips
        WHERE zone IN (SELECT location FROM silver.zones WHERE rate > 1) GROUP BY cat""",
    "double cast to decimal": "SELECT zone, sum(cast(dist AS decimal(18,6))) AS d FROM silver.trips GROUP BY zone",
    "row per row": """SELECT t.id, t.cat, upper(t.cat) AS loud, z.borough FROM silver.trips t
        LEFT JOIN silver.zones z ON t.zone = z.location WHERE t.qty IS NOT NULL""",
    "row per row without a key": "SELECT cat, qty > 1 AS many FROM silver.trips",
    "key of an optional lookup": """SELECT z.location AS place, count(*) AS n, sum(t.qty) AS q FROM silver.trips t
        LEFT JOIN silver.zones z ON z.location = t.zone GROUP BY z.location""",
    "only a lookup": "SELECT borough, count(*) AS n, sum(rate) AS r FROM silver.zones GROUP BY borough",
    "stream joined to a lookup that comes first": """SELECT z.borough, sum(t.qty) AS q FROM silver.zones z
        JOIN silver.trips t ON t.zone = z.location GROUP BY z.borough""",
}

AFFECTED = {
    "min and max": "SELECT zone, min(fare) AS lo, max(day) AS hi, count(*) AS n FROM silver.trips GROUP BY zone",
    "distinct count": "SELECT day, count(DISTINCT cat) AS c, sum(DISTINCT qty) AS q FROM silver.trips GROUP BY day",
    "float sum": "SELECT cat, sum(dist) AS d, avg(dist) AS a FROM silver.trips GROUP BY cat",
    "function of a key": "SELECT coalesce(cat, 'none') AS c, max(qty) AS m FROM silver.trips GROUP BY cat",
    "best row": "SELECT zone, max_by(id, coalesce(fare, 0) * 1000 + id) AS best FROM silver.trips GROUP BY zone",
    "window function": """SELECT id, zone, row_number() OVER (PARTITION BY zone ORDER BY id) AS r,
        sum(qty) OVER (PARTITION BY zone, cat) AS q FROM silver.trips""",
    "latest per key": """SELECT zone, id, fare FROM (SELECT *, row_number() OVER (PARTITION BY zone ORDER BY id DESC) AS r
        FROM silver.trips) WHERE r = 1""",
    "join of streams": """SELECT t.zone, sum(p.amount) AS paid, count(*) AS n FROM silver.trips t
        JOIN silver.pays p ON p.trip = t.id GROUP BY t.zone""",
    "join of streams on the key": """SELECT t.zone, max(t.fare) AS m, count(p.pay) AS n FROM silver.trips t
        LEFT JOIN silver.pays p ON p.zone = t.zone GROUP BY t.zone""",
    "left join, key on the other side": """SELECT t.cat, count(p.pay) AS n, sum(p.amount) AS s FROM silver.trips t
        LEFT JOIN silver.pays p ON p.trip = t.id GROUP BY t.cat""",
    "keys from both sides": """SELECT t.cat, p.zone, count(*) AS n FROM silver.trips t JOIN silver.pays p ON p.trip = t.id
        GROUP BY t.cat, p.zone""",
    "unpaid": """SELECT t.cat, count(*) AS n FROM silver.trips t LEFT JOIN silver.pays p ON p.trip = t.id
        WHERE p.pay IS NULL GROUP BY t.cat""",
    "unpaid zones": """SELECT t.zone, max(t.id) AS m FROM silver.trips t LEFT JOIN silver.pays p ON p.zone = t.zone
        WHERE p.pay IS NULL GROUP BY t.zone""",
    "anti join": "SELECT t.cat, count(*) AS n FROM silver.trips t LEFT ANTI JOIN silver.pays p ON p.trip = t.id GROUP BY t.cat",
    "full join": """SELECT coalesce(t.zone, p.zone) AS zone, t.n, p.s
        FROM (SELECT zone, count(*) AS n FROM silver.trips GROUP BY zone) t
        FULL JOIN (SELECT zone, sum(amount) AS s FROM silver.pays GROUP BY zone) p ON t.zone = p.zone""",
    "two levels": """WITH per AS (SELECT zone, cat, count(*) AS n FROM silver.trips GROUP BY zone, cat),
        ranked AS (SELECT zone, cat, n, row_number() OVER (PARTITION BY zone ORDER BY n DESC, cat) AS r FROM per),
        total AS (SELECT zone, sum(fare) AS s FROM silver.trips GROUP BY zone)
        SELECT total.zone, total.s, ranked.cat AS top FROM total JOIN ranked ON ranked.zone = total.zone AND ranked.r = 1""",
    "self join": """SELECT a.zone, count(*) AS pairs FROM silver.trips a JOIN silver.trips b ON a.zone = b.zone AND a.id < b.id
        GROUP BY a.zone""",
    "self join through ids": """SELECT a.cat, count(*) AS pairs FROM silver.trips a JOIN silver.trips b ON a.qty = b.id
        GROUP BY a.cat""",
    "three sources": """SELECT t.day, z.borough, sum(p.amount) AS s FROM silver.trips t JOIN silver.pays p ON p.trip = t.id
        LEFT JOIN silver.zones z ON z.location = t.zone WHERE t.qty > 0 AND p.amount > 1 GROUP BY t.day, z.borough""",
    "union": """SELECT zone, count(*) AS n FROM (SELECT zone FROM silver.trips UNION ALL SELECT cast(zone AS int) AS zone
        FROM silver.pays) GROUP BY zone""",
    "implicit join": """SELECT t.cat, max(p.amount) AS m FROM silver.trips t, silver.pays p WHERE t.id = p.trip GROUP BY t.cat""",
    "union of tables": """SELECT zone, 'trip' AS kind, max(qty) AS m FROM silver.trips GROUP BY zone
        UNION ALL SELECT zone, 'pay' AS kind, count(*) AS m FROM silver.pays GROUP BY zone""",
    "window over groups": """SELECT zone, cat, sum(qty) AS q, rank() OVER (PARTITION BY zone ORDER BY sum(qty) DESC) AS r
        FROM silver.trips GROUP BY zone, cat""",
    "qualify": "SELECT zone, id FROM silver.trips QUALIFY row_number() OVER (PARTITION BY zone ORDER BY id) = 1",
    "chain of optional joins": """SELECT t.zone, count(p.pay) AS n, count(u.pay) AS m FROM silver.trips t
        LEFT JOIN silver.pays p ON p.zone = t.zone LEFT JOIN silver.pays u ON u.trip = p.pay GROUP BY t.zone""",
    "exists as semi join": "SELECT t.cat, max(t.id) AS m FROM silver.trips t LEFT SEMI JOIN silver.pays p ON p.zone <=> t.zone GROUP BY t.cat",
    "distinct over groups": "SELECT DISTINCT zone, count(*) AS n FROM silver.trips GROUP BY zone, cat",
}

small = st.one_of(st.none(), st.integers(0, 3))
cents = st.one_of(st.none(), st.integers(-300, 300).map(lambda n: Decimal(n) / 100))
trip_rows = st.tuples(
    st.integers(1, 6),
    small,
    st.sampled_from([None, "a", "b"]),
    cents,
    st.one_of(st.none(), st.integers(-2, 5)),
    st.one_of(st.none(), st.integers(-(2**59), 2**59)),
    st.one_of(st.none(), st.integers(-8, 8).map(lambda n: n / 4)),
    st.one_of(st.none(), st.booleans()),
    st.integers(1, 2).map(lambda d: date(2024, 1, d)),
    st.integers(0, 90).map(lambda m: datetime(2024, 1, 1) + timedelta(minutes=m)),
)
pay_rows = st.tuples(st.integers(1, 5), st.one_of(st.none(), st.integers(1, 6)), small, cents)
zone_rows = st.tuples(st.integers(0, 3), st.sampled_from([None, "x", "y"]), st.one_of(st.none(), st.integers(0, 3)))


def change(name: str, rows: st.SearchStrategy[tuple[Any, ...]]) -> st.SearchStrategy[tuple[str, Any, bool]]:
    return st.tuples(st.just(name), rows, st.integers(0, 3).map(lambda n: n == 0))


changes = st.one_of(
    change("silver.trips", trip_rows),
    change("silver.trips", trip_rows),
    change("silver.trips", trip_rows),
    change("silver.pays", pay_rows),
    change("silver.pays", pay_rows),
    change("silver.zones", zone_rows),
)
batches = st.lists(st.lists(changes, min_size=1, max_size=6), min_size=1, max_size=4)


DUCK_TYPES = {"string": "varchar", "timestamp_ntz": "timestamp"}


@cache
def duck(sql: str) -> str:
    tree = sqlglot.parse_one(sql, dialect="spark")
    for call in list(tree.find_all(exp.CountIf)):  # over nulls alone DuckDB's count_if is null, Spark's is 0
        call.replace(exp.Count(this=exp.Case().when(call.this.copy(), "1")))
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.lower() == "raise_error":
            call.set("this", "error")
    return tree.sql("duckdb")


@cache
def database() -> duckdb.DuckDBPyConnection:
    """One database for all cases: opening one costs more than a case."""
    db = duckdb.connect(config={"threads": 1})
    db.execute("CREATE SCHEMA silver")
    for name, info in INPUTS.items():
        columns = ", ".join(f"{column} {DUCK_TYPES.get(kind, kind)}" for column, kind in info.columns.items())
        db.execute(f"CREATE TABLE {now_view(name)} ({columns})")
        db.execute(f"CREATE TABLE {feed_view(name)} ({columns}, _weight bigint)")
        db.execute(f"CREATE VIEW {name} AS SELECT * FROM {now_view(name)}")
    return db


class World(PlanExecutor):
    """The inputs and one Gold table, kept by a plan the way an executor keeps it."""

    def __init__(self, plan: GoldPlan, sql: str) -> None:
        self.plan, self.sql, self.db = plan, sql, database()
        self.now: dict[str, dict[Any, tuple[Any, ...]]] = {name: {} for name in INPUTS}
        for name in plan.inputs:
            self.fill(now_view(name), [])
        self.store(plan.full_sql)

    def fill(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        self.db.execute(f"TRUNCATE {table}")
        if rows:
            values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
            self.db.execute(f"INSERT INTO {table} VALUES {values}")

    def view(self, name: str, sql: str | None) -> None:
        self.db.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {duck(sql or '')}")

    def store(self, sql: str | None) -> None:
        self.db.execute(f"CREATE OR REPLACE TABLE _lode_gold AS {duck(sql or '')}")

    def apply(self, batch: list[tuple[str, tuple[Any, ...], bool]]) -> None:
        feeds: dict[str, list[tuple[Any, ...]]] = {name: [] for name in INPUTS}
        for name, row, delete in batch:
            old = self.now[name].pop(row[0], None)
            if old is not None:
                feeds[name].append((*old, -1))
            if not delete:
                self.now[name][row[0]] = row
                feeds[name].append((*row, 1))
        for name in self.plan.inputs:
            if feeds[name]:
                self.fill(now_view(name), list(self.now[name].values()))
            self.fill(feed_view(name), feeds[name])
        self.publish({name for name in self.plan.inputs if feeds[name]})

    def gold(self) -> list[tuple[Any, ...]]:
        if self.plan.state_home == "table":
            self.view("_lode_folded", self.plan.unpack_sql)
            return self.rows(self.plan.present_sql or "")
        columns = ", ".join(f"`{column}`" for column in self.plan.columns)
        return self.rows(f"SELECT {columns} FROM _lode_gold")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return sorted(self.db.execute(duck(sql)).fetchall(), key=_order)

    def recompute(self) -> list[tuple[Any, ...]]:
        return self.rows(self.sql)


def literal(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'"


def _order(row: tuple[Any, ...]) -> tuple[str, ...]:
    """Inexact columns must not decide the order, or two equal tables would be compared row against wrong row."""
    return tuple("" if isinstance(value, float) else str(value) for value in row)


def same(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> bool:
    if len(left) != len(right):
        return False
    return all(_same(a, b) for one, other in zip(left, right, strict=True) for a, b in zip(one, other, strict=True))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, (float, Decimal)) and isinstance(other, (float, Decimal)):
        # DuckDB's avg(decimal) is a double; the exact digits are compared on Spark.
        exact = isinstance(one, Decimal) and isinstance(other, Decimal)
        return (
            one == other
            if exact
            else isclose(one, other, abs_tol=1.1e-2 if round(float(one), 2) == float(one) else 1e-5)
        )
    return bool(one == other)


CASES = int(os.environ.get("LODE_CASES", "5"))
ANYHOW = settings(max_examples=CASES, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
QUERIES = {**DELTA, **AFFECTED}


@cache
def planned(name: str, force: Strategy | None) -> GoldPlan:
    return analyse(QUERIES[name], INPUTS, force=force)


@pytest.mark.parametrize("name", DELTA)
def test_sums_of_rows_are_kept_by_delta(name: str) -> None:
    plan = analyse(DELTA[name], INPUTS)
    assert plan.strategy == "delta", plan.reason


@pytest.mark.parametrize("name", AFFECTED)
def test_what_needs_its_whole_group_is_kept_by_affected_keys(name: str) -> None:
    plan = analyse(AFFECTED[name], INPUTS)
    assert plan.strategy == "affected", plan.reason


@pytest.mark.parametrize("name", QUERIES)
@ANYHOW
@given(batches=batches)
def test_gold_equals_a_recompute_after_every_batch(name: str, batches: list[Any]) -> None:
    follow(planned(name, None), QUERIES[name], batches)


@pytest.mark.parametrize("name", [name for name in DELTA if name not in ("global", "global filtered")])
@ANYHOW
@given(batches=batches)
def test_affected_keys_also_fit_where_delta_does(name: str, batches: list[Any]) -> None:
    follow(planned(name, "affected"), DELTA[name], batches)


def follow(plan: GoldPlan, sql: str, batches: list[Any]) -> None:
    world = World(plan, sql)
    for batch in batches:
        world.apply(batch)
        assert same(world.gold(), world.recompute()), (batch, world.gold(), world.recompute())


def trip(number: int, zone: int | None = 1, cat: str | None = "a") -> tuple[Any, ...]:
    return (number, zone, cat, None, 1, None, None, None, date(2024, 1, 1), datetime(2024, 1, 1))


# Changes that random batches seldom make at the right moment; each broke an earlier or a deliberately wrong rewrite.
SCENARIOS = {
    "both sides of a join go at once": (
        "keys from both sides",
        [
            [("silver.trips", trip(1), False), ("silver.pays", (1, 1, 2, None), False)],
            [("silver.trips", trip(1), True), ("silver.pays", (1, 1, 2, None), True)],
        ],
    ),
    "an unpaid trip is paid": (
        "unpaid",
        [[("silver.trips", trip(1), False)], [("silver.pays", (1, 1, 2, None), False)]],
    ),
    "a zone is paid for": (
        "unpaid zones",
        [[("silver.trips", trip(1), False)], [("silver.pays", (1, None, 1, None), False)]],
    ),
    "the other side of a self join arrives later": (
        "self join through ids",
        [[("silver.trips", trip(2, cat="b"), False)], [("silver.trips", trip(1), False)]],
    ),
    "a trip without a zone comes and goes": (
        "key of an optional lookup",
        [
            [("silver.zones", (1, "x", 1), False), ("silver.trips", trip(1, zone=2), False)],
            [("silver.trips", trip(2, zone=2), False)],
            [("silver.trips", trip(1, zone=2), True)],
            [("silver.trips", trip(2, zone=1), False)],
        ],
    ),
    "a null key loses its last row": (
        "min and max",
        [[("silver.trips", trip(1, zone=None), False)], [("silver.trips", trip(1, zone=3), False)]],
    ),
}


@pytest.mark.parametrize("force", [None, "affected"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_gold_equals_a_recompute_when(scenario: str, force: Strategy | None) -> None:
    name, batches = SCENARIOS[scenario]
    follow(planned(name, force), QUERIES[name], batches)
