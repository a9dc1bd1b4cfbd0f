"""A column of an input becomes wider, or one is added: Gold has the types and columns of its query, and goes on."""

from __future__ import annotations

from typing import Any

import pytest
from gold_line import Gold, Silver, declared

from lodestream.pipeline.gold import InputInfo
from lodestream.tables.lake import Lake as Tables

BEFORE = InputInfo("silver.meters", {"id": "int", "x": "float", "d": "decimal(12,2)", "n": "int"}, keys=("id",))
AFTER = InputInfo(
    "silver.meters", {"id": "int", "x": "double", "d": "decimal(14,2)", "n": "bigint", "more": "string"}, keys=("id",)
)
QUERIES = {
    "rows": "SELECT id, x, d FROM silver.meters",
    "sums": "SELECT id % 2 AS k, sum(d) AS s, avg(d) AS a FROM silver.meters GROUP BY id % 2",
    "most": "SELECT id % 2 AS k, max(n) AS m, max(x) AS x FROM silver.meters GROUP BY id % 2",
    "all": "SELECT t.*, rank() OVER (PARTITION BY n ORDER BY id) AS r FROM silver.meters t",
}


@pytest.mark.parametrize("restarted", [True, False], ids=["after a restart", "in a running process"])
def test_gold_follows_an_input_whose_columns_change(lake: Any, restarted: bool) -> None:
    catalog = lake.config.catalog.name
    tables = Tables(lake.spark.newSession(), catalog)
    silver = Silver(tables, BEFORE)
    silver.become([(1, 3.5, "1.00", 1), (2, 0.1, "2.00", 2)])
    inputs = {BEFORE.name: BEFORE.keys}
    golds = {name: Gold(lake.spark, catalog, declared(name, sql), inputs) for name, sql in QUERIES.items()}
    for gold in golds.values():
        gold.step()
    _widen(tables, catalog)
    silver.info = AFTER
    silver.become([(1, 10 / 3, "1.00", 1, "a"), (2, 0.1, "999999999999.99", 2**40, None), (3, 1.5, "5.00", 3, "b")])
    for name, gold in golds.items():
        if restarted:
            gold.restart()
        gold.step()
        true = _true(lake.spark, catalog, QUERIES[name])
        assert [(f.name, f.dataType) for f in gold.rows.schema] == [(f.name, f.dataType) for f in true.schema], name
        assert sorted(map(str, gold.rows.collect())) == sorted(map(str, true.collect())), name


def _widen(tables: Tables, catalog: str) -> None:
    for change in ("x TYPE double", "d TYPE decimal(14,2)", "n TYPE bigint"):
        tables.spark.sql(f"ALTER TABLE {catalog}.silver.meters ALTER COLUMN {change}")
    tables.spark.sql(f"ALTER TABLE {catalog}.silver.meters ADD COLUMN more string")


def _true(spark: Any, catalog: str, sql: str) -> Any:
    session = spark.newSession()
    session.sql(f"USE {catalog}")
    return session.sql(sql)
