# ruff: noqa: E501 - a query reads best in one piece
"""A Silver query reaches Spark as the user wrote it."""

from __future__ import annotations

import pytest

from lodestream.flows.code.declared import _over_views

VIEWS = {"silver.trips": "v1", "silver.zones": "v2"}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT concat(cat, '''s') AS c FROM silver.trips", "SELECT concat(cat, '''s') AS c, `trips`.`_lode` FROM v1 AS `trips`"),
        ("SELECT log10(x) AS l -- why\nFROM silver.trips t", "SELECT log10(x) AS l, `t`.`_lode` -- why\nFROM v1 t"),
        ("SELECT *, named_struct('City', cat) AS s FROM silver.trips", "SELECT *, named_struct('City', cat) AS s FROM v1 AS `trips`"),
        (
            "SELECT silver.trips.fare, z.name FROM silver.trips JOIN silver.zones z ON z.id = trips.zone",
            "SELECT trips.fare, z.name, `trips`.`_lode` FROM v1 AS `trips` JOIN v2 z ON z.id = trips.zone",
        ),
        (
            "SELECT id FROM silver.trips WHERE a OR b UNION ALL SELECT id FROM silver.trips t",
            "SELECT id, `trips`.`_lode` FROM v1 AS `trips` WHERE a OR b UNION ALL SELECT id, `t`.`_lode` FROM v1 t",
        ),
    ],
)  # fmt: skip
def test_only_names_of_tables_and_the_carried_column_are_changed(sql: str, expected: str) -> None:
    assert _over_views(sql, VIEWS, ("silver.trips", "_lode")) == expected


def test_a_query_that_only_spark_can_read_is_run_as_it_is() -> None:
    assert _over_views("SELECT ??? FROM silver.trips", VIEWS, None) == "SELECT ??? FROM v1 AS `trips`"
