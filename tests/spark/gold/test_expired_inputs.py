"""Gold whose input has forgotten the snapshot that it was made from: made anew, and right."""

from __future__ import annotations

import time
from typing import Any

import pytest
from test_gold_behaviour import EVENTS, Line, event


@pytest.fixture
def line(lake: Any) -> Line:
    return Line(lake)


def test_gold_over_gold_is_rebuilt_when_the_snapshot_it_stands_on_has_expired(line: Line) -> None:
    line.events.append([event(1, "a", "1.00"), event(2, "b", "2.00")])
    sums = line.gold("sums", "SELECT k, sum(x) AS s FROM silver.events GROUP BY k", appended=(EVENTS.name,))
    sql = "SELECT s > 1 AS large, count(*) AS n FROM gold.sums GROUP BY s > 1"
    totals = line.gold("totals", sql, inputs=("gold.sums",))
    sums.step()
    totals.step()  # its reader has seen the snapshot, and would answer from memory that it exists
    line.events.append([event(3, "a", "4.00")])
    sums.step()
    store = line.tables.store("gold.sums")
    store.table.expireSnapshots().expireOlderThan(int(time.time() * 1000)).retainLast(1).commit()
    assert totals.step() is not None
    totals.check()
