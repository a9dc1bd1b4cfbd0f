# ruff: noqa: E501 - a query reads best in one piece
"""Keys that SQL calls equal and functions tell apart: 0.0 and -0.0 are one group, with two texts."""

from __future__ import annotations

import pytest

from lodestream.pipeline.gold import InputInfo, analyse

TRIPS = InputInfo(
    "silver.trips",
    {"id": "int", "zone": "int", "cat": "string", "fare": "decimal(10,2)", "dist": "double", "seen": "timestamp"},
    keys=("id",),
)


@pytest.mark.parametrize(
    ("sql", "strategy", "because"),
    [
        ("SELECT cast(dist AS string) AS s, max(fare) AS m FROM silver.trips GROUP BY dist", "full", "no column tells"),
        (
            "SELECT cast(zone / 2 AS string) AS s, max(fare) AS m FROM silver.trips GROUP BY zone / 2",
            "full",
            "no column",
        ),
        ("SELECT cast(fare AS string) AS s, max(fare) AS m FROM silver.trips GROUP BY fare", "affected", "own s,"),
        (
            "SELECT upper(u) AS s, max(fare) AS m FROM (SELECT lower(cat) AS u, fare FROM silver.trips) GROUP BY u",
            "affected",
            "own s,",
        ),
        (
            "SELECT year(window.start) AS s, max(fare) AS m FROM silver.trips GROUP BY window(seen, '1 day')",
            "affected",
            "own s,",
        ),
        ("SELECT dist * 2 AS d, max(fare) AS m FROM silver.trips GROUP BY dist", "affected", "own d,"),
        ("SELECT dist, hash(dist) AS h, max(fare) AS m FROM silver.trips GROUP BY dist", "affected", "own dist,"),
        (
            "SELECT cast(d AS string) AS s, zone FROM (SELECT DISTINCT dist AS d, zone FROM silver.trips) q",
            "affected",
            "own zone,",
        ),
        (
            "SELECT cast(d AS string) AS s, zone FROM (SELECT dist AS d, zone FROM silver.trips UNION SELECT dist, zone FROM silver.trips) q",
            "affected",
            "own zone,",
        ),
    ],
)
def test_changed_rows_find_a_group_by_what_all_of_it_has_alike(sql: str, strategy: str, because: str) -> None:
    plan = analyse(sql, (TRIPS,))
    assert (plan.strategy, because in plan.reason) == (strategy, True), plan.reason


@pytest.mark.parametrize(
    ("one", "other", "by_value"),
    [
        ("decimal(38,10)", "decimal(38,0)", False),
        ("decimal(38,20)", "bigint", False),
        ("decimal(38,18)", "bigint", True),
        ("decimal(38,28)", "int", True),
        ("decimal(10,2)", "decimal(12,4)", True),
        ("decimal(38,10)", "decimal(38,10)", True),
        ("bigint", "tinyint", True),
        ("decimal(10,2)", "double", False),
    ],
)
def test_numbers_that_spark_rounds_before_it_compares_them_are_not_one_key(
    one: str, other: str, by_value: bool
) -> None:
    sql = "SELECT a.d, max(b.v) AS m FROM silver.a a JOIN silver.b b ON a.d = b.d GROUP BY a.d"
    infos = [InputInfo(f"silver.{name}", {"d": kind, "v": "int"}) for name, kind in (("a", one), ("b", other))]
    found = analyse(sql, infos).affected_sql["silver.b"]
    assert (found is not None and "JOIN" not in found) is by_value, found


@pytest.mark.parametrize(
    ("condition", "certain"),
    [
        ("a.f = b.f >= false", False),
        ("a.f = b.f IN (true, false)", False),
        ("a.f = b.f LIKE 'x'", False),
        ("a.f <=> b.f = true", False),
        ("a.f IS DISTINCT FROM b.f = true", False),
        ("a.f = (b.f >= false)", True),
        ("(a.f = b.f) = true", True),
        ("a.f = b.f AND a.v NOT IN (1, 2) AND NOT a.v = 3 AND cast(a.v AS string) LIKE 'x!%' ESCAPE '!'", True),
    ],
)
def test_comparisons_in_a_row_are_not_taken_apart(condition: str, certain: bool) -> None:
    infos = [InputInfo(f"silver.{name}", {"f": "boolean", "v": "int"}) for name in "ab"]
    plan = analyse(f"SELECT a.f, max(b.v) AS m FROM silver.a a JOIN silver.b b ON {condition} GROUP BY a.f", infos)
    assert ("without parentheses" not in plan.reason) is certain, plan.reason
