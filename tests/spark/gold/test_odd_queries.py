# ruff: noqa: E501 - a query reads best in one piece
"""Queries that were once kept wrongly, or not at all, through the real flows: three batches with updates and deletes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from gold_line import Gold, Silver, declared
from pyspark.sql import DataFrame
from pyspark.sql.functions import count, struct, to_json
from pyspark.sql.types import StructType

from lodestream.errors import DeclarationError
from lodestream.pipeline.gold import InputInfo, query_inputs
from lodestream.recovery.verify.compare import Comparison
from lodestream.tables.distinct import counted
from lodestream.tables.inspect import Inspector
from lodestream.tables.lake import Lake as Tables
from lodestream.tables.stored import as_stored

THINGS = InputInfo(
    "silver.things",
    {"id": "int", "k": "string", "v": "string", "n": "int", "d": "decimal(6,2)", "x": "double", "f": "float"},
    keys=("id",),
)
FLAGS = InputInfo("silver.flags", {"id": "int", "ok": "boolean", "d": "decimal(6,3)"}, keys=("id",))
INFOS = {info.name: info for info in (THINGS, FLAGS)}
Row = tuple[Any, ...]

# Row 9 has no flag, and a text that is no number; the second batch leaves it alone, the third changes it.
THINGS_IN_TIME: list[list[Row]] = [
    [
        (1, "a", "1", 1, "1.25", "0.0", "-0.0"),
        (2, "A", "2", 2, "2.25", "-0.0", "0.0"),
        (3, "b", "2", 3, "-1.25", "5.5", "1.5"),
        (4, None, None, None, None, None, None),
        (9, "b", "oops", 3, "9.99", "NaN", "1.5"),
    ],
    [
        (1, "a", "1", 5, "1.25", "-0.0", "0.0"),
        (2, "A", "1", 2, "2.35", "0.0", "-0.0"),
        (3, "B", "2", 3, "-1.25", "-0.0", "1.5"),
        (5, "a", "3", 0, "1.25", "-0.0", "-0.0"),
        (9, "b", "oops", 3, "9.99", "NaN", "1.5"),
    ],
    [
        (1, "a", "1", 5, "1.25", "0.0", "0.0"),
        (3, "b", "2", 4, "1.25", "-0.0", "-0.0"),
        (5, "A", "3", 0, "1.26", "0.0", "-0.0"),
        (9, "b", "worse", 3, "9.99", "0.0", "1.5"),
    ],
]
FLAGS_IN_TIME: list[list[Row]] = [
    [(1, "true", "1.254"), (2, "true", "2.251"), (3, "false", None), (7, "true", "1.250")],
    [(1, "true", "1.254"), (2, "true", "2.251"), (3, "true", "1.255"), (5, "false", "1.246")],
    [(1, "true", "1.254"), (3, "true", "1.249"), (5, "false", "1.250")],
]

ZEROS = {
    "rows": "SELECT id, x, f, array(x, 1) AS a, named_struct('y', f) AS z FROM silver.things",
    "same rows": "SELECT k, f FROM silver.things WHERE n > 0",
    "beside others": "SELECT id, x, count(*) OVER (PARTITION BY id) AS n FROM silver.things",
    "groups": "SELECT x, count(*) AS n, max(id) AS m FROM silver.things GROUP BY x",
    "sums": "SELECT f, count(*) AS n FROM silver.things GROUP BY f",
}
NAMES = {
    "a field of a struct": "SELECT t.s.g AS g, max(t.s.e) AS e FROM (SELECT named_struct('g', k, 'e', n) AS s FROM silver.things) t GROUP BY t.s.g",
    "a field by delta": "SELECT t.s.g AS g, count(*) AS c FROM (SELECT named_struct('g', k, 'e', n) AS s FROM silver.things) t WHERE t.s.e > 1 GROUP BY t.s.g",
    "a star in a call": "SELECT id, struct(*) AS everything FROM silver.things",
    "a star in a count": "SELECT k, count(DISTINCT *) AS c FROM silver.things GROUP BY k",
    "keys below a union that rounds": "SELECT d, max(id) AS m FROM (SELECT id, d FROM silver.things UNION ALL SELECT id, d FROM silver.flags) GROUP BY d",
    "a union that is rounded": "SELECT d, count(*) AS c FROM (SELECT id, cast(d AS decimal(4,1)) AS d FROM silver.things UNION ALL SELECT id, d FROM silver.flags) GROUP BY d",
    "a subquery in the list": "SELECT id, (SELECT max(g.d) FROM silver.flags g WHERE g.id = t.id) AS d FROM silver.things t",
    "a subquery over all": "SELECT k, count(*) AS c, (SELECT count(*) FROM silver.flags) AS flags FROM silver.things GROUP BY k",
}
NAMES |= {
    "names with dots, blanks and quotes": "SELECT id, k AS `a.b`, n AS `x``y`, named_struct('my field', v, 'c.d', n) AS `of it` FROM silver.things",
    "groups with such names": "SELECT k AS `a.b`, max(n) AS `x``y` FROM silver.things GROUP BY k",
    "sums with such names": "SELECT k AS `a.b`, count(*) AS `x``y` FROM silver.things GROUP BY k",
    "years that Python does not know": "SELECT date_add(DATE '9999-12-30', n) AS day, max(id) AS m FROM silver.things GROUP BY 1",
}
REFUSALS = {
    "a key that a join keeps from the query": "SELECT cast(t.v AS int) AS v, max(t.n) AS m FROM silver.things t JOIN silver.flags g ON g.id = t.id GROUP BY cast(t.v AS int)",
    "a key that a filter keeps from the query": "SELECT cast(v AS int) AS v, max(n) AS m FROM silver.things WHERE id < 9 GROUP BY cast(v AS int)",
    "a division": "SELECT 10 DIV t.n AS q, min(t.k) AS m FROM silver.things t JOIN silver.flags g ON g.id = t.id AND g.ok GROUP BY 10 DIV t.n",
}
TYPES = {
    "collated groups": "SELECT k COLLATE UTF8_LCASE AS k, count(*) AS c FROM silver.things WHERE k IN ('b', 'B') AND id = 3 GROUP BY k COLLATE UTF8_LCASE",
    "collated rows": "SELECT id, k COLLATE UTF8_LCASE AS k FROM silver.things",
    "collated elsewhere": "SELECT n, max(id) AS m FROM silver.things WHERE k COLLATE UTF8_LCASE = 'A' GROUP BY n",
    "small groups": "SELECT cast(n AS smallint) AS s, cast(n AS tinyint) AS t, max(id) AS m FROM silver.things GROUP BY n",
    "small sums": "SELECT cast(n AS smallint) AS s, count(*) AS c FROM silver.things GROUP BY cast(n AS smallint)",
    "small rows": "SELECT id, cast(n AS tinyint) AS t, array(cast(n AS smallint)) AS a FROM silver.things",
}
# Group keys that no table can keep, and that no reader sees.
HIDDEN = {
    "an interval": ("SELECT count(*) AS c FROM silver.things GROUP BY make_dt_interval(n)", "full"),
    "an interval beside a key": ("SELECT k, count(*) AS c FROM silver.things GROUP BY k, make_dt_interval(n)", "affected"),
    "an interval with HAVING": ("SELECT k, count(*) AS c FROM silver.things GROUP BY k, make_ym_interval(n) HAVING count(*) > 0", "affected"),
    "a null": ("SELECT k, count(*) AS c FROM silver.things GROUP BY k, NULL", "affected"),
}  # fmt: skip
# Spark groups by maps, but holds no two of them equal.
MAPS = {
    "groups of maps": "SELECT map('a', id) AS m, count(*) AS c FROM silver.things GROUP BY map('a', id)",
    "groups of hidden maps": "SELECT count(*) AS c, sum(n) AS s FROM silver.things GROUP BY struct(map('a', id) AS x)",
    "rows of maps": "SELECT from_json(concat('{\"q\":', n, '}'), 'map<string,int>') AS j FROM silver.things",
}
QUERIES = {**ZEROS, **NAMES, **REFUSALS, **TYPES, **MAPS, **{name: sql for name, (sql, _) in HIDDEN.items()}}


class Line:
    def __init__(self, lake: Any) -> None:
        self.spark, self.catalog, self.config = lake.spark, lake.config.catalog.name, lake.config
        self.tables = Tables(lake.spark.newSession(), self.catalog)
        self.things, self.flags = Silver(self.tables, THINGS), Silver(self.tables, FLAGS)
        self.judge = lake.spark.newSession()
        self.judge.conf.set("spark.sql.session.timeZone", "UTC")
        self.judge.sql(f"USE {self.catalog}")

    def become(self, batch: int) -> None:
        self.things.become(THINGS_IN_TIME[batch])
        self.flags.become(FLAGS_IN_TIME[batch])

    def gold(self, name: str, sql: str, small: int | None = None, **options: Any) -> Gold:
        inputs = {one: INFOS[one].keys for one in query_inputs(sql)}
        given = {} if small is None else {"small": small}
        return Gold(self.spark, self.catalog, declared(name, sql, **options), inputs, **given)

    def check(self, gold: Gold) -> None:
        """The user's text, untouched, over the tables themselves: rows to the sign of a zero, types as tables keep them."""
        sql = gold.table.sql or ""
        kept, true = gold.rows, self.judge.sql(sql)
        assert _kinds(kept.schema) == _kinds(true.schema), sql
        assert _rows(kept) == _rows(true), sql

    def alter(self, change: str) -> None:
        self.tables.spark.sql(f"ALTER TABLE {self.tables.identifier(THINGS.name)} {change}")


def _kinds(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, as_stored(field.dataType).simpleString()) for field in schema]


def _rows(frame: DataFrame) -> Counter[str]:
    """As text that Spark makes: Python has no value for some dates."""
    named = frame.toDF(*[f"c{n}" for n in range(len(frame.columns))])
    return Counter(row[0] for row in named.select(to_json(struct("*"), {"ignoreNullFields": "false"})).collect())


@pytest.fixture
def line(lake: Any) -> Line:
    return Line(lake)


@pytest.mark.timeout(900)
def test_odd_queries_follow_their_inputs(line: Line) -> None:
    """Each as a small table, which is written as a whole, and as a large one, whose rows are replaced by key."""
    line.become(0)
    tables = [line.gold(f"t{n}", sql) for n, sql in enumerate(QUERIES.values())]
    tables += [line.gold(f"large{n}", sql, small=0) for n, sql in enumerate(QUERIES.values())]
    wrong: dict[str, str] = {}
    for batch in range(3):
        if batch:
            line.become(batch)
        for table in tables:
            if table.table.name in wrong:
                continue
            try:
                table.step()
                line.check(table)
            except Exception as error:
                wrong[table.table.name] = (
                    f"batch {batch}: {table.table.sql}\n{type(error).__name__}: {str(error)[:1500]}"
                )
    assert not wrong, "\n\n".join(wrong.values())
    strategies = {table.table.sql: table.gold.plan.strategy for table in tables if table.gold.plan}
    assert [strategies[sql] for sql in ZEROS.values()] == ["delta", "delta", "affected", "affected", "delta"]
    assert {strategies[sql] for sql in REFUSALS.values()} == {"affected"}
    assert {strategies[sql] for sql in MAPS.values()} == {"full"}
    assert strategies[TYPES["collated groups"]] == strategies[TYPES["collated rows"]] == "full"
    assert [strategies[sql] for sql, _ in HIDDEN.values()] == [strategy for _, strategy in HIDDEN.values()]


def test_a_strategy_that_would_store_what_no_table_can_is_refused(line: Line) -> None:
    line.become(0)
    with pytest.raises(DeclarationError, match="strategy 'delta' was asked for") as refused:
        line.gold("unkept", HIDDEN["an interval"][0], strategy="delta").step()
    assert "make_dt_interval" in (refused.value.why or "")


def test_a_value_that_only_the_change_meets_leads_to_a_rebuild(line: Line) -> None:
    line.become(0)
    table = line.gold("numbers", REFUSALS["a key that a join keeps from the query"])
    table.step()
    line.become(1)
    assert table.step() is not None
    line.check(table)
    assert [event.name for event in table.flow.take_notices()] == ["rebuilt"]
    line.flags.become([(9, "true", None)])  # now the query itself cannot be computed
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        table.step()
    line.flags.become(FLAGS_IN_TIME[1])
    table.step()
    line.check(table)


def test_a_comparison_sees_the_sign_of_a_zero(line: Line) -> None:
    def rows(zero: str) -> DataFrame:
        return line.judge.sql(f"SELECT 1 AS id, cast('{zero}' AS double) AS x, array(cast('{zero}' AS float)) AS a")

    found = Comparison(rows("0.0"), rows("-0.0"), ["id"]).differences()
    assert (found.changed, dict(found.columns)) == (1, {"x": 1, "a": 1})
    assert not Comparison(rows("-0.0"), rows("-0.0"), []).differences().any


def test_rows_with_maps_and_variants_are_counted_as_they_are(line: Line) -> None:
    """Compiled code that sorts a map takes the value before a null for it; a variant cannot be grouped by at all."""
    session = line.spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "true")
    rows = session.sql(
        "SELECT map('a', 1, 'b', IF(id = 0, NULL, 1)) AS m, array(struct(map('k', IF(id = 2, NULL, 1.5D)) AS deep)) AS s, "
        "parse_json('{\"x\": 1}') AS v FROM range(0, 4, 1, 1)"
    )
    found = counted(rows, ["m", "s"], count("*").alias("n"))
    assert [(one.name, one.dataType) for one in found.schema][:2] == [(n, rows.schema[n].dataType) for n in ("m", "s")]
    seen = {(row["m"]["b"], row["s"][0]["deep"]["k"]): row["n"] for row in found.collect()}
    assert seen == {(None, 1.5): 1, (1, 1.5): 2, (1, None): 1}
    assert [row["n"] for row in counted(rows, ["v"], count("*").alias("n")).select("n").collect()] == [4]


def test_a_column_made_anew_and_columns_in_another_order_rebuild_what_stars_read(line: Line) -> None:
    line.become(0)
    stars = line.gold("stars", "SELECT * FROM silver.things")
    calls = line.gold("calls", "SELECT id, struct(*) AS everything FROM silver.things")
    named = line.gold("named", "SELECT k, max(n) AS n FROM silver.things GROUP BY k")
    for table in (stars, calls, named):
        table.step()
    line.alter("DROP COLUMN n")
    line.alter("ADD COLUMN n int")
    columns = {name: kind for name, kind in THINGS.columns.items() if name != "n"} | {"n": "int"}
    line.things.info = replace(THINGS, columns=columns)
    line.things.append([(11, "a", "1", "1.00", "0.0", "0.0", 7)])
    for table in (stars, calls, named):
        table.step()
        line.check(table)
    line.alter("ALTER COLUMN n FIRST")
    line.things.info = replace(THINGS, columns={"n": "int"} | columns)
    line.things.append([(8, 12, "a", "1", "1.00", "0.0", "0.0")])
    for table in (stars, calls, named):
        table.step()
        line.check(table)
    assert stars.rows.columns[0] == "n"


def test_a_setting_that_changes_answers_rebuilds_the_table(line: Line) -> None:
    line.become(0)
    table = line.gold("texts", 'SELECT id, "k" AS q FROM silver.things')
    table.step()
    line.check(table)
    table.restart()
    for session in (table.flow.lake.spark, line.judge):
        session.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    line.become(1)
    table.step()
    line.check(table)


UNSTORABLE = {
    "a null": ("SELECT id, NULL AS nothing FROM silver.things", "column nothing is of type void", "CAST(NULL AS STRING) AS nothing"),
    "an interval": ("SELECT k, max(make_dt_interval(n)) AS took FROM silver.things GROUP BY k", "column took is of type interval day to second", "CAST(took AS STRING) AS took"),
    "months": ("SELECT id, make_ym_interval(n) AS age FROM silver.things", "column age is of type interval year to month", "CAST(age AS STRING) AS age"),
    "a field": ("SELECT id, named_struct('a', NULL) AS s FROM silver.things", "column s.a is of type void", "CAST(s.a AS STRING)"),
    "an empty list": ("SELECT id, array() AS none FROM silver.things", "column none is of type void", "CAST(NULL AS STRING)"),
    "a variant": ("SELECT id, parse_json('1') AS j FROM silver.things", "column j is of type variant", "to_json(j)"),
}  # fmt: skip


def test_a_type_that_no_table_can_keep_is_refused_with_the_way_out(line: Line) -> None:
    line.become(0)
    for name, (sql, what, fix) in UNSTORABLE.items():
        with pytest.raises(DeclarationError) as refused:
            line.gold("unkept", sql).step()
        assert refused.value.what.startswith(f"gold.unkept: {what}"), name
        assert fix in (refused.value.fix or ""), name
    assert not line.tables.exists("gold.unkept")


def test_a_partition_column_of_any_type_can_change_its_type(line: Line) -> None:
    line.become(0)
    edits = (
        "cast(n AS smallint) AS p",
        "cast(n AS int) AS p",
        "cast(n AS bigint) AS p",
        "concat('n', n) AS p",
        "cast(d AS decimal(8,2)) AS p",
        "cast(n AS tinyint) AS p",
    )
    schemas = []
    for edit in edits:
        sql = f"SELECT {edit}, max(id) AS m FROM silver.things GROUP BY {edit.partition(' AS p')[0]}"
        for batch in (0, 1):
            line.become(batch)
            table = line.gold("parted", sql, partition_by="p")
            table.step()
            line.check(table)
        store = line.tables.store("gold.parted")
        schemas.append(len(store.table.schemas()))
        assert [str(field.name()) for field in store.table.spec().fields()] == ["p"], edit
        seen = Inspector(line.config).look("gold.parted")
        assert seen is not None
        assert seen.table.scan().to_arrow().num_rows == table.rows.count()
    assert schemas == [1, 1, 2, 3, 4, 5]


def test_a_rebuild_to_the_same_columns_adds_no_schema(line: Line) -> None:
    line.become(0)
    table = line.gold(
        "same",
        "SELECT cast(n AS smallint) AS s, collect_set(k) AS ks, 'x' COLLATE UTF8_LCASE AS c FROM silver.things GROUP BY n",
    )
    table.step()
    for batch in (1, 2):
        line.become(batch)
        table.gold.rebuild_next()
        table.step()
        line.check(table)
    assert len(line.tables.store("gold.same").table.schemas()) == 1
