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
