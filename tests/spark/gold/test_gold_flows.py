"""The Gold flow itself: every strategy, small and large tables, equal to the query after every batch."""

from __future__ import annotations

from typing import Any

import pytest
from gold_line import Gold, Silver, declared
from test_gold_on_spark import AFFECTED, DELTA, INPUTS, contents

from lodestream.tables.lake import Lake as Tables

LOOKUPS = ("silver.zones",)


class Line:
    def __init__(self, lake: Any) -> None:
        self.spark, self.catalog = lake.spark, lake.config.catalog.name
        self.silver = {
            name: Silver(Tables(lake.spark.newSession(), self.catalog), info) for name, info in INPUTS.items()
        }

    def gold(self, name: str, sql: str, **given: Any) -> Gold:
        table = declared(name, sql)
        inputs = {one: INPUTS[one].keys for one in INPUTS if one in table.inputs}
        return Gold(self.spark, self.catalog, table, inputs, lookups=LOOKUPS, **given)

    def become(self, seed: int | None, *names: str) -> None:
        rows = {name: [] for name in INPUTS} if seed is None else contents(seed)
        for name in names or INPUTS:
            self.silver[name].become(rows[name])


@pytest.fixture
def line(lake: Any) -> Line:
    return Line(lake)


@pytest.mark.timeout(400)
def test_every_query_follows_its_inputs(line: Line) -> None:
    """Odd tables count as large, so that rows are replaced by key; even ones are written as a whole."""
    line.become(1)
    queries = [*DELTA, *AFFECTED]
    tables = [line.gold(f"t{n}", sql, small=0 if n % 2 else None) for n, sql in enumerate(queries)]
    for batch in (("silver.trips", "silver.pays"), ("silver.zones",), ()):
        for table in tables:
            table.step()
            table.check()
        line.become(None if not batch else 2, *batch)
    for table in tables:
        table.step()
        table.check()
