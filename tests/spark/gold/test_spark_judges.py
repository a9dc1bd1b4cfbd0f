# ruff: noqa: E501 - a query reads best in one piece
"""Spark is the judge of what is followed: its functions are those of the lists, and a wrong plan is never used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from gold_line import Gold, Silver, declared
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lodestream.errors import DeclarationError
from lodestream.flows.gold import table as gold_table
from lodestream.flows.gold.equivalence import judge
from lodestream.pipeline.gold import GoldPlan, InputInfo, analyse
from lodestream.pipeline.gold import spark_functions as listed
from lodestream.tables.lake import Lake as Tables

TRIPS = InputInfo(
    "silver.trips",
    {
        "id": "int",
        "zone": "int",
        "cat": "string",
        "fare": "decimal(8,2)",
        "qty": "int",
        "dist": "float",
        "seen": "timestamp_ntz",
    },
    keys=("id",),
)
ZONES = InputInfo("silver.zones", {"zone": "int", "name": "string"}, lookup=True)


def _shapes() -> dict[str, StructType]:
    return {
        info.name: StructType.fromDDL(", ".join(f"{name} {kind}" for name, kind in info.columns.items()))
        for info in (TRIPS, ZONES)
    }


GROUPS = "SELECT zone, count(*) AS n, sum(fare) AS s, avg(qty) AS a FROM silver.trips WHERE qty > 1 OR cat = 'o''hara' GROUP BY zone"
HAVING = "SELECT cat, count(*) AS n FROM silver.trips GROUP BY cat HAVING count(*) > 1"
ROWS = "SELECT t.id, concat(t.cat, '''s') AS c, z.name FROM silver.trips t LEFT JOIN silver.zones z ON z.zone = t.zone"
EXTREMES = "SELECT zone, max(fare) AS m, count(DISTINCT cat) AS c FROM silver.trips GROUP BY zone"
MERGED = "SELECT q.k * 2 AS k2, max(q.qty) AS m FROM (SELECT zone + qty AS k, qty FROM silver.trips) q GROUP BY q.k * 2"


def _verdict(spark: SparkSession, plan: GoldPlan, sql: str) -> str | None:
    own = analyse(sql, (TRIPS, ZONES), force="full").full_sql
    return judge(spark, plan, own, _shapes()).reason


def _plan(sql: str) -> GoldPlan:
    return analyse(sql, (TRIPS, ZONES))


@pytest.mark.parametrize("sql", [GROUPS, HAVING, ROWS, EXTREMES, MERGED])
def test_a_plan_that_equals_its_query_is_used(spark: SparkSession, sql: str) -> None:
    session = spark.newSession()
    own = analyse(sql, (TRIPS, ZONES), force="full").full_sql
    verdict = judge(session, _plan(sql), own, _shapes())
    assert verdict.reason is None
    assert verdict.tried == 1


@pytest.mark.parametrize("missed", ["silver.flags", "silver.marks"])
def test_keys_that_the_change_of_one_input_misses_are_seen_beside_the_changes_of_the_other(
    spark: SparkSession, missed: str
) -> None:
    """There are two values of a key alone, so the changes of either input touch all of them."""
    infos = tuple(InputInfo(name, {"id": "int", "flag": "boolean"}) for name in ("silver.flags", "silver.marks"))
    sql = "SELECT a.flag, count(*) AS n FROM silver.flags a JOIN silver.marks b ON a.flag = b.flag GROUP BY a.flag"
    plan, own = analyse(sql, infos), analyse(sql, infos, force="full").full_sql
    shapes = {one.name: StructType.fromDDL("id int, flag boolean") for one in infos}
    session = spark.newSession()
    assert judge(session, plan, own, shapes).reason is None
    wrong = {**plan.affected_sql, missed: f"SELECT * FROM ({plan.affected_sql[missed]}) WHERE false"}
    assert judge(session, replace(plan, affected_sql=wrong), own, shapes).reason


def _in(field: str, old: str, new: str) -> Callable[[GoldPlan], GoldPlan]:
    """Damage one statement of a plan, as a wrong rewriting would."""

    def damaged(plan: GoldPlan) -> GoldPlan:
        value = getattr(plan, field)
        if isinstance(value, Mapping):
            assert any(old in text for text in value.values()), value
            return replace(plan, **{field: {name: text.replace(old, new) for name, text in value.items()}})
        assert old in value, value
        return replace(plan, **{field: value.replace(old, new)})

    return damaged


@pytest.mark.parametrize(
    ("sql", "damage"),
    [
        pytest.param(GROUPS, _in("delta_sql", "OR", "AND"), id="another condition"),
        pytest.param(GROUPS, _in("delta_sql", "'o''hara'", "'ohara'"), id="a lost quote"),
        pytest.param(GROUPS, _in("delta_sql", "ELSE -a2", "ELSE a2"), id="what goes is added"),
        pytest.param(GROUPS, _in("store_sql", "n AS `n`", "CAST(n AS INT) AS `n`"), id="another type"),
        pytest.param(HAVING, _in("present_sql", "> 1", ">= 1"), id="another HAVING"),
        pytest.param(ROWS, _in("delta_sql", "LEFT JOIN", "JOIN"), id="another join"),
        pytest.param(ROWS, _in("delta_sql", "'''s'", "'s'"), id="another text"),
        pytest.param(ROWS, _in("recompute_sql", "LEFT JOIN", "JOIN"), id="another join when a lookup changes"),
        pytest.param(EXTREMES, _in("recompute_sql", "max(fare)", "min(fare)"), id="another aggregate"),
        pytest.param(EXTREMES, _in("affected_sql", "_lode_feed", "_lode_now"), id="keys that went are forgotten"),
        pytest.param(
            MERGED,
            _in("affected_sql", "(`trips`.zone + `trips`.qty)", "`trips`.zone + `trips`.qty"),
            id="lost parentheses",
        ),
        pytest.param(EXTREMES, _in("recompute_sql", "GROUP BY", "GROUP"), id="not SQL"),
    ],
)
def test_a_plan_that_differs_is_refused_with_the_reason(
    spark: SparkSession, sql: str, damage: Callable[[GoldPlan], GoldPlan]
) -> None:
    assert _verdict(spark.newSession(), damage(_plan(sql)), sql)


def test_an_answer_that_depends_on_the_order_of_rows_refuses_nothing(spark: SparkSession) -> None:
    sql = "SELECT zone, first(cat) AS f, collect_list(qty) AS l, max_by(id, qty) AS b FROM silver.trips GROUP BY zone"
    assert _verdict(spark.newSession(), _plan(sql), sql) is None


ORDERED = "SELECT zone, first(cat) AS f, max(fare) AS m, count(DISTINCT qty) AS q FROM silver.trips GROUP BY zone"


@pytest.mark.parametrize("damage", [("max(fare)", "min(fare)"), ("count(DISTINCT qty)", "count(qty)")], ids=["m", "q"])
def test_a_column_that_depends_on_the_order_of_rows_forgives_no_other_one(
    spark: SparkSession, damage: tuple[str, str]
) -> None:
    session = spark.newSession()
    assert _verdict(session, _plan(ORDERED), ORDERED) is None
    assert _verdict(session, _in("recompute_sql", *damage)(_plan(ORDERED)), ORDERED)


def test_a_plan_is_tried_on_dates_and_beside_columns_that_no_value_can_be_made_for(spark: SparkSession) -> None:
    session, shapes = spark.newSession(), _shapes()
    shapes[TRIPS.name] = StructType.fromDDL(
        shapes[TRIPS.name].toDDL() + ", took interval day to second, j variant NOT NULL"
    )
    dates = "SELECT zone, max(cast(cat AS date)) AS m FROM silver.trips GROUP BY zone"
    own = analyse(dates, (TRIPS, ZONES), force="full").full_sql
    assert judge(session, _plan(dates), own, shapes).tried == 1
    assert judge(session, _in("recompute_sql", "max(", "min(")(_plan(dates)), own, shapes).reason
    numbers = "SELECT zone, max(10 DIV (qty - 2)) AS d FROM silver.trips GROUP BY zone"
    own = analyse(numbers, (TRIPS, ZONES), force="full").full_sql
    assert judge(session, _plan(numbers), own, shapes).tried == 1


def test_a_plan_that_cannot_be_tried_is_not_used(line: Line) -> None:
    sql = "SELECT zone, max(cast(substr(cat, 1, 1) = 'a' OR cast(cat AS boolean) AS int)) AS m FROM silver.trips WHERE cat <> 'b' GROUP BY zone"
    table = line.gold("untried", sql)
    table.step()
    line.trips.become(ROWS_AFTER)
    table.step()
    table.check()
    assert table.gold.plan is not None
    assert (table.gold.plan.strategy, "could not be tried" in table.gold.plan.reason) == ("full", True)
    asked = line.gold("asked", sql, strategy="affected")
    asked.step()
    line.trips.become(ROWS_BEFORE)
    asked.step()
    asked.check()
    assert [event.name for event in asked.flow.take_notices()] == ["plan-untried"]


def test_a_query_that_refuses_some_rows_is_tried_on_others(spark: SparkSession) -> None:
    sql = "SELECT zone, max(cast(cat AS int)) AS m, max(10 / qty) AS d FROM silver.trips GROUP BY zone"
    own = analyse(sql, (TRIPS, ZONES), force="full").full_sql
    assert judge(spark.newSession(), _plan(sql), own, _shapes()).tried == 1


def test_a_column_that_is_never_null_gets_no_null(spark: SparkSession) -> None:
    strict = StructType.fromDDL(
        "id int NOT NULL, zone int, cat string NOT NULL, fare decimal(8,2), qty int, dist float, seen timestamp_ntz"
    )
    own = analyse(GROUPS, (TRIPS, ZONES), force="full").full_sql
    verdict = judge(spark.newSession(), _plan(GROUPS), own, {**_shapes(), TRIPS.name: strict})
    assert (verdict.reason, verdict.tried) == (None, 1)


def test_the_lists_of_functions_are_sparks_own(spark: SparkSession) -> None:
    registry, jvm = spark._jsparkSession.sessionState().functionRegistry(), spark._jvm
    chance = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.expressions.Nondeterministic")
    found: dict[str, str] = {}
    by_chance = set[str]()
    names = registry.listFunction().iterator()
    while names.hasNext():
        name = names.next()
        info = registry.lookupFunction(name).get()
        found[name.funcName()] = info.getGroup()
        if chance.isAssignableFrom(jvm.java.lang.Class.forName(info.getClassName())):
            by_chance.add(name.funcName())
    folding = {n for n, group in found.items() if group in ("agg_funcs", "window_funcs", "generator_funcs")}
    assert {n for n, group in found.items() if group == "agg_funcs"} <= listed.AGGREGATES
    assert {n for n, group in found.items() if group == "window_funcs"} == listed.WINDOW_ONLY
    assert {n for n, group in found.items() if group == "generator_funcs"} <= listed.GENERATORS
    assert set(found) >= listed.ROW_WISE
    assert not listed.ROW_WISE & folding
    assert len(by_chance) > 5
    assert by_chance <= listed.CHANGING


class Line:
    def __init__(self, lake: Any) -> None:
        self.spark, self.catalog = lake.spark, lake.config.catalog.name
        self.tables = Tables(lake.spark.newSession(), self.catalog)
        self.trips = Silver(self.tables, TRIPS)
        self.trips.become(ROWS_BEFORE)

    def gold(self, name: str, sql: str, **options: Any) -> Gold:
        return Gold(self.spark, self.catalog, declared(name, sql, **options), {TRIPS.name: ("id",)})

    def alter(self, change: str) -> None:
        self.tables.spark.sql(f"ALTER TABLE {self.tables.identifier(TRIPS.name)} {change}")


ROWS_BEFORE = [(n, n % 2, "ab"[n % 2], f"{n}.25", n, n / 3, f"2024-01-01 00:0{n}:00") for n in range(6)]
ROWS_AFTER = [(n, n % 3, "ab"[n % 2], f"{n}.50", n, n / 3, f"2024-01-01 00:0{n}:00") for n in range(1, 8)]


@pytest.fixture
def line(lake: Any) -> Line:
    return Line(lake)


def test_a_flow_uses_full_refresh_when_spark_disagrees(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    real = gold_table.choose

    def wrong(sql: str, infos: Any, force: Any = None) -> GoldPlan:
        plan = real(sql, infos, force)
        return plan if force == "full" or plan.delta_sql is None else _in("delta_sql", "> 1", "> 2")(plan)

    monkeypatch.setattr(gold_table, "choose", wrong)
    sql = "SELECT zone, count(*) AS n FROM silver.trips WHERE qty > 1 GROUP BY zone"
    table = line.gold("counts", sql)
    table.step()
    assert table.gold.plan is not None
    assert table.gold.plan.strategy == "full"
    assert [event.name for event in table.flow.take_notices()] == ["plan-refused"]
    line.trips.become(ROWS_AFTER)
    table.step()
    table.check()
    forced = line.gold("forced", sql, strategy="delta")
    with pytest.raises(DeclarationError, match="Spark shows that it is not the query"):
        forced.step()


WIDENED = {
    "sums": "SELECT zone, sum(fare) AS s, avg(fare) AS a FROM silver.trips GROUP BY zone",
    "longest": "SELECT zone, max(qty) AS q, max(dist) AS d FROM silver.trips GROUP BY zone",
    "passed": "SELECT id, dist, cast(dist AS string) AS text, fare FROM silver.trips",
    "starred": "SELECT t.*, rank() OVER (PARTITION BY zone ORDER BY id) AS r FROM silver.trips t",
    "hidden": "SELECT zone, sum(fare) AS s FROM silver.trips GROUP BY zone HAVING sum(fare) > 1",
}


@pytest.mark.parametrize("restarted", [False, True], ids=["while it runs", "between two runs"])
def test_a_column_that_was_widened_or_added_rebuilds_what_reads_it(line: Line, restarted: bool) -> None:
    tables = {name: line.gold(name, sql) for name, sql in WIDENED.items()}
    counted = line.gold("counted", "SELECT cat, count(*) AS n FROM silver.trips GROUP BY cat")
    for table in [*tables.values(), counted]:
        table.step()
        table.check()
    before = counted.gold.definition
    line.alter("ALTER COLUMN dist TYPE double")
    line.alter("ALTER COLUMN fare TYPE decimal(12,2)")
    line.alter("ALTER COLUMN qty TYPE bigint")
    line.alter("ADD COLUMN extra string")
    wider = {**TRIPS.columns, "fare": "decimal(12,2)", "qty": "bigint", "dist": "double", "extra": "string"}
    line.trips.info = replace(TRIPS, columns=wider)
    line.trips.become([(*row[:3], "9999999.25", 5_000_000_000 + row[0], *row[5:], "new") for row in ROWS_AFTER])
    for table in [*tables.values(), counted]:
        if restarted:
            table.restart()
        table.step()
        table.check()
    assert counted.gold.definition == before, "it reads none of the changed columns"
