"""What a Gold table's definition covers of its inputs: a changed column rebuilds every table that reads it."""

from __future__ import annotations

import pytest

from lodestream.pipeline.gold import InputInfo
from lodestream.pipeline.gold.definition import read_columns

PAYS = InputInfo("silver.pays", {"trip": "string", "zone": "string", "amount": "decimal(8,2)"})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT /*+ COALESCE(1) */ * FROM silver.pays",
        "SELECT /*+ REPARTITION(2), BROADCAST(p) */ p.* FROM silver.pays p",
        "TABLE silver.pays",
        "FROM silver.pays |> WHERE amount > 1",
        "SELECT zone FROM silver.pays PIVOT (sum(amount) FOR zone IN ('a'))",
    ],
)
def test_columns_that_no_name_asks_for_are_part_of_the_definition(sql: str) -> None:
    assert list(read_columns(sql, [PAYS])) == ["silver.pays.trip", "silver.pays.zone", "silver.pays.amount"]
    assert list(read_columns("SELECT /*+ COALESCE(1) */ zone, count(*) AS n FROM silver.pays", [PAYS])) == [
        "silver.pays.zone"
    ]
