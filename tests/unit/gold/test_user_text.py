# ruff: noqa: E501 - a query reads best in one piece
"""What Spark gets is what the user wrote: cut from the text by position, never rendered again."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from query_check import case_of

from lodestream.errors import DeclarationError
from lodestream.pipeline.gold import GoldPlan, InputInfo, analyse, query_inputs
from lodestream.pipeline.gold.definition import deciding, definition
from lodestream.pipeline.gold.parsing import parse, span
from lodestream.pipeline.gold.spark_functions import AGGREGATES, CHANGING, GENERATORS, KNOWN, ROW_WISE
from lodestream.pipeline.query_check import check_query

TRIPS = InputInfo(
    "silver.trips",
    {
        "id": "int",
        "zone": "int",
        "Cat": "string",
        "fare": "decimal(10,2)",
        "qty": "int",
        "seen": "timestamp",
        "flag": "boolean",
        "xs": "array<int>",
    },
    keys=("id",),
)
ZONES = InputInfo("silver.zones", {"zone": "int", "name": "string"}, lookup=True)
INPUTS = (TRIPS, ZONES)

# Each changed its meaning, or its look, when it was rendered again.
EXPRESSIONS = [
    "to_json(named_struct('City', Cat))",
    "struct(Cat AS Cat)",
    "floor(log10(fare))",
    "to_char(fare, '999.99')",
    "concat(Cat, '''s')",
    "concat(Cat, 'it\\'s', \"dq\")",
    "unix_date(date(seen))",
    "parse_json(Cat)",
    "Cat RLIKE r'\\d+'",
    "CAST(fare AS DECIMAL(12, 4))",
    "fare  >  10   OR qty>5",
    "NOT flag",
    "Cat IS NULL",
    "date_format(seen, 'yyyy-MM-dd')",
    "x'1F'",
    "-qty",
    "`qty` % 2",
    "CASE WHEN flag THEN 'a' ELSE 'b' END",
    "transform(xs, x -> x + qty)",
    "INTERVAL 10 MINUTES + seen",
    "extract(HOUR FROM seen)",
]


def _everything(plan: GoldPlan) -> str:
    parts = [plan.full_sql, plan.delta_sql, plan.store_sql, plan.recompute_sql, *plan.affected_sql.values()]
    return "\n".join(part for part in parts if part)


def _without_qualifiers(sql: str) -> str:
    return sql.replace("`trips`.", "")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_projected_expression_reaches_spark_character_by_character(expression: str) -> None:
    plan = analyse(f"SELECT id, {expression} AS e FROM silver.trips WHERE qty > 0", INPUTS)
    assert plan.strategy == ("affected" if "parse_json" in expression else "delta"), plan.reason
    assert expression in _without_qualifiers(plan.delta_sql or plan.recompute_sql or "")


@pytest.mark.parametrize("expression", [e for e in EXPRESSIONS if "parse_json" not in e])
def test_a_group_key_reaches_spark_character_by_character(expression: str) -> None:
    plan = analyse(f"SELECT {expression} AS e, count(*) AS n FROM silver.trips GROUP BY 1", INPUTS)
    if plan.strategy != "full":
        assert f"({expression}) AS k1" in _without_qualifiers(plan.delta_sql or "")


@pytest.mark.parametrize(
    "condition", ["Cat = 'o''hara'", "flag OR qty > 5", "Cat LIKE 'a\\_%'", "NOT flag AND qty = 1 OR zone = 2"]
)
def test_a_condition_stays_whole_in_filters_and_in_aggregates(condition: str) -> None:
    plan = analyse(
        f"SELECT zone, count(*) FILTER (WHERE {condition}) AS n, sum(CASE WHEN {condition} THEN qty END) AS q FROM silver.trips WHERE {condition} GROUP BY zone",
        INPUTS,
    )
    assert plan.strategy == "delta", plan.reason
    text = _without_qualifiers(plan.delta_sql or "")
    assert f"WHEN ({condition}) THEN" in text
    assert f"WHERE {condition}" in text


def test_what_is_put_into_another_expression_stands_in_parentheses() -> None:
    sql = (
        "SELECT q.k * 2 AS k2, max(q.qty) AS m FROM (SELECT zone + qty AS k, qty FROM silver.trips) q GROUP BY q.k * 2"
    )
    plan = analyse(sql, INPUTS)
    assert plan.strategy == "affected"
    assert "((`trips`.zone + `trips`.qty) * 2)" in plan.affected_sql["silver.trips"]


def test_a_subquery_is_not_merged_but_hands_the_weight_up() -> None:
    sql = "WITH t AS (SELECT zone, fare > 10 OR qty > 5 AS flagged, fare FROM silver.trips) SELECT zone, sum(fare) AS s FROM t WHERE flagged AND zone = 1 GROUP BY zone"
    plan = analyse(sql, INPUTS)
    assert plan.strategy == "delta"
    assert "fare > 10 OR qty > 5 AS flagged, fare, `trips`._weight AS _weight FROM _lode_feed_silver_trips" in (
        plan.delta_sql or ""
    )
    assert "WHERE flagged AND zone = 1" in (plan.delta_sql or "")


def test_comments_hints_and_the_semicolon_do_not_swallow_what_follows_a_piece() -> None:
    sql = "SELECT /*+ BROADCAST(z) */ zone -- the zone\n, max(fare) AS m /* most */ FROM silver.trips -- all of it\n GROUP BY zone -- end\n;"
    plan = analyse(sql, INPUTS)
    assert plan.strategy == "affected"
    assert not {"--", "/*", ";"} & {two for two in ("--", "/*", ";") if two in (plan.recompute_sql or "")}
    assert plan.full_sql.startswith("SELECT /*+ BROADCAST(z) */ zone -- the zone")


def test_a_comment_behind_the_semicolon_is_no_statement() -> None:
    plan = analyse("SELECT zone, count(*) AS n FROM silver.trips GROUP BY zone; -- end", INPUTS)
    assert plan.strategy == "delta"


@pytest.mark.parametrize("condition", ["offset > 5", "zone = 1 AND offset > limit", "NOT offset IS NULL"])
def test_a_column_called_like_a_clause_does_not_end_the_condition(condition: str) -> None:
    info = InputInfo("silver.t", {"zone": "int", "offset": "bigint", "limit": "bigint"})
    plan = analyse(f"SELECT zone, count(*) AS n FROM silver.t WHERE {condition} GROUP BY zone ORDER BY zone", [info])
    assert f"WHERE {condition} ) AS _lode_rows" in (plan.delta_sql or "")


@pytest.mark.parametrize(
    ("sql", "because"),
    [
        ("SELECT id, my_udf(zone) AS u FROM silver.trips", "my_udf"),
        ("SELECT id, catalog.db.f(zone) AS u FROM silver.trips", "function f"),
        ("SELECT count(*) AS n FROM (SELECT zone, my_agg(fare) AS s FROM silver.trips GROUP BY zone)", "my_agg"),
        ("SELECT id, `sum`(zone) AS u FROM silver.trips", "function sum"),
        ("SELECT id, DATE 'today' AS d FROM silver.trips", "the clock"),
        ("SELECT id FROM silver.trips WHERE seen > 'yesterday'", "the clock"),
        ("SELECT id, CAST('now' AS timestamp) AS d FROM silver.trips", "the clock"),
        ("SELECT id, CAST(concat('to', 'day') AS date) AS d FROM silver.trips", "the clock"),
        ("SELECT id FROM silver.trips WHERE seen < concat('no', 'w')", "the clock"),
        ("SELECT id FROM silver.trips WHERE seen < 'to' 'morrow'", "the clock"),
        ("SELECT id FROM silver.trips WHERE seen < r'now'", "the clock"),
        ("SELECT id FROM silver.trips WHERE seen > reverse('yadot')", "the clock"),
        ("SELECT id FROM silver.trips WHERE seen > (translate('tod-ay', '-', ''))", "the clock"),
        ("SELECT id, unix_timestamp() AS d FROM silver.trips", "unix_timestamp"),
        ("SELECT id, aes_encrypt(Cat, 'k') AS d FROM silver.trips", "aes_encrypt"),
        ("SELECT id, zone:a FROM silver.trips", "not known"),
        ("SELECT id FROM silver.trips -- C:\\\n WHERE length(cat) < 2", "only Spark can read it"),
        ("SELECT id,\fcat FROM silver.trips", "only Spark can read it"),
        ("SELECT id, timestampadd(DAY, 1, seen) AS d FROM silver.trips", "written with a unit"),
        ("SELECT id FROM silver.trips JOIN VALUES (1, 2) AS v(k, n) ON zone = v.k", "v(...) gives columns other names"),
        ("SELECT id, Cat:name AS d FROM silver.trips", "only Spark can read it"),
        ("FROM silver.trips |> SELECT id", "|>"),
        ("SELECT id, stack(2, qty, zone) AS (a) FROM silver.trips", "several columns"),
        ("WITH unused AS (SELECT * FROM silver.zones) SELECT id FROM silver.trips", "nothing uses"),
        (
            "WITH t AS (SELECT id FROM t) SELECT t.id FROM t JOIN silver.trips s ON s.id = t.id",
            "the WITH that makes it",
        ),
    ],
)
def test_what_nobody_has_proven_is_kept_by_full_refresh(sql: str, because: str) -> None:
    plan = analyse(sql, INPUTS)
    assert plan.strategy == "full"
    assert because in plan.reason
    assert plan.full_sql.count("_lode_now_silver") >= 1


def test_a_query_that_only_spark_can_read_is_kept_by_full_refresh() -> None:
    sql = "SELECT zone, sum(fare) AS s FROM silver.trips ??? GROUP BY zone"
    plan = analyse(sql, INPUTS)
    assert (plan.strategy, plan.inputs) == ("full", ("silver.trips",))
    assert "only Spark can read it" in plan.reason
    assert plan.full_sql == "SELECT zone, sum(fare) AS s FROM _lode_now_silver_trips AS `trips` ??? GROUP BY zone"
    assert query_inputs("SELECT t.zone FROM silver.trips t, silver.zones ???") == ("silver.trips", "silver.zones")


@pytest.mark.parametrize(
    "name", ["mean", "std", "every", "some", "try_sum", "try_avg", "median", "listagg", "any_value"]
)
def test_every_aggregate_is_seen_as_one(name: str) -> None:
    plan = analyse(f"SELECT {name}(qty) AS a FROM silver.trips", INPUTS)
    assert plan.shape != "rows"
    nested = analyse(f"SELECT count(*) AS n FROM (SELECT {name}(qty) AS a FROM silver.trips) q", INPUTS)
    assert nested.strategy == "full"


def test_window_is_a_name_like_any_other() -> None:
    plan = analyse(
        "SELECT window(seen, '1 day') AS window, count(*) AS n FROM silver.trips GROUP BY window(seen, '1 day')", INPUTS
    )
    assert plan.strategy == "delta"
    start = analyse("SELECT window.start AS s, count(*) AS n FROM silver.trips GROUP BY window(seen, '1 day')", INPUTS)
    assert (start.strategy, start.state_columns[0].name) == ("delta", "k1")


def test_a_field_of_a_struct_keeps_the_name_of_its_table() -> None:
    a = InputInfo("silver.a", {"id": "int", "s": "struct<f:int,g:struct<h:int>>"})
    b = InputInfo("silver.b", {"id": "int", "f": "int"})
    sql = "SELECT t.id AS id, t.s.f AS f, t.s.g.h AS h FROM silver.a t JOIN silver.b s ON t.id = s.id"
    plan = analyse(sql, (a, b))
    assert "t.s.f AS f, t.s.g.h AS h" in plan.full_sql
    alone = analyse("SELECT silver.a.s.f AS f, silver.a.id AS id FROM silver.a", (a, b))
    assert alone.full_sql == "SELECT a.s.f AS f, a.id AS id FROM _lode_now_silver_a AS `a`"


def test_a_subquery_in_the_select_list_is_not_followed_by_delta() -> None:
    plan = analyse("SELECT id, EXISTS (SELECT 1 FROM silver.zones) AS some FROM silver.trips", INPUTS)
    assert plan.strategy != "delta"


def test_a_union_that_rounds_its_keys_is_not_followed_by_them() -> None:
    e, f = InputInfo("silver.e", {"k": "bigint"}), InputInfo("silver.f", {"k": "decimal(38,20)"})
    sql = "SELECT k, count(*) AS n FROM (SELECT k FROM silver.e UNION ALL SELECT k FROM silver.f) q GROUP BY k"
    assert analyse(sql, (e, f)).strategy == "full"
    assert analyse(sql, (e, InputInfo("silver.f", {"k": "int"}))).strategy == "affected"


DEFINED = "SELECT id, max(to_csv(struct(*))) AS line FROM silver.trips GROUP BY id"


def _defined(sql: str, columns: dict[str, str], ids: dict[str, int]) -> str:
    info = InputInfo("silver.trips", columns)
    return definition(sql, analyse(sql, [info]), [info], {}, {"silver.trips": ids})


def test_a_definition_covers_what_the_query_reads_of_its_inputs() -> None:
    before = {"id": "int", "x": "string"}, {"id": 1, "x": 2}
    more = {"id": "int", "x": "string", "y": "int"}, {"id": 1, "x": 2, "y": 3}
    anew = {"id": "int", "x": "string"}, {"id": 1, "x": 9}
    turned = {"x": "string", "id": "int"}, {"id": 1, "x": 2}
    plain = "SELECT x, count(*) AS n FROM silver.trips GROUP BY x"
    assert _defined(plain, *before) == _defined(plain, *more), "a column that it never names"
    assert _defined(plain, *before) == _defined(plain, *turned)
    assert _defined(plain, *before) != _defined(plain, *anew), "dropped and added again: other values"
    for star in (DEFINED, "SELECT * FROM silver.trips", "SELECT t.*, 1 AS one FROM silver.trips t"):
        assert _defined(star, *before) != _defined(star, *more), star
        assert _defined(star, *before) != _defined(star, *turned), star
    wider = {"id": "bigint", "x": "string"}, {"id": 1, "x": 2}
    assert _defined(DEFINED, *before) != _defined(DEFINED, *wider)


def test_settings_that_change_answers_count_once_they_are_set() -> None:
    usual = {"spark.sql.ansi.enabled": "true", "spark.sql.shuffle.partitions": "2"}
    assert deciding(usual) == deciding({**usual, "spark.sql.shuffle.partitions": "7", "spark.app.name": "x"})
    for key in ("spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.timestampType", "spark.sql.legacy.sizeOfNull",
                "spark.sql.function.concatBinaryAsString"):  # fmt: skip
        assert deciding(usual) != deciding({**usual, key: "x"}), key
        assert deciding({**usual, key: "x"}) != deciding({**usual, key: "y"}), key


def test_the_lists_of_functions_share_no_name() -> None:
    assert len(KNOWN) >= len(ROW_WISE | AGGREGATES | GENERATORS | CHANGING)
    assert not ROW_WISE & (AGGREGATES | GENERATORS | CHANGING)


_LEAVES = st.sampled_from(
    ["a", "t.b", "1", "'it''s'", "NULL", "count(*)", "f(x)", "CASE WHEN a THEN b END", "(a)", "-c"]
)
_BINARY = st.sampled_from([" + ", " AND ", " OR ", " = ", "||", " <=> ", " IS DISTINCT FROM "])


@given(
    st.recursive(
        _LEAVES,
        lambda inner: (
            st.tuples(inner, _BINARY, inner).map("".join)
            | inner.map(lambda e: f"({e})")
            | inner.map(lambda e: f"coalesce({e}, 0)")
        ),
        max_leaves=8,
    )
)
def test_the_text_of_every_expression_means_the_expression(expression: str) -> None:
    """Cut out of its surroundings and read again, each part of a query is the same part."""
    tree = parse(f"SELECT /* x */ {expression} AS e FROM t").trees[0]
    node = tree.expressions[0].this
    first, last = span(node)
    text = f"SELECT /* x */ {expression} AS e FROM t"[first:last]
    assert text == expression
    assert parse(f"SELECT {text}").trees[0].expressions[0] == node


def test_a_text_is_parsed_once_and_nobody_changes_its_tree() -> None:
    for number in range(40):
        case = case_of(3, number)
        parsed = parse(case.sql)
        before = repr(parsed.trees)
        for force in (None, "affected"):
            with contextlib.suppress(DeclarationError):
                analyse(case.sql, case.infos, force=force)
        check_query(case.sql, {name: info.columns for name, info in case.infos.items()})
        assert parse(case.sql) is parsed
        assert repr(parsed.trees) == before
        assert all(below.parent is node for node in parsed.trees[0].walk() for below in node.iter_expressions())
