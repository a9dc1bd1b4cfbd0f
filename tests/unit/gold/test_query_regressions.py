"""What once went wrong stays right: each query over many histories, in each way a table can be kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from query_check import Case, check, pool
from query_dialect import duck
from query_regressions import CLOCKS, REGRESSIONS, SPARK_ONLY
from query_shrink import shrunk, told
from query_tables import INFOS, NO_LOOKUP

from lodestream.pipeline.gold import analyse

HISTORIES = 12


def cases(sql: str, name: str) -> list[Case]:
    """One query with several histories, zones being a lookup in some, the table large in some."""
    found = []
    for number in range(HISTORIES):
        first = Case(f"1:{name}/{number}", sql, duck(sql), pool(1, number), pooled=number)
        found.append(replace(first, infos=INFOS if number % 3 else NO_LOOKUP, large=number % 2 == 1))
    return found


@pytest.mark.parametrize("force", [None, "affected"])
@pytest.mark.parametrize("name", REGRESSIONS)
def test_gold_equals_the_query(name: str, force: str | None) -> None:
    for case in cases(REGRESSIONS[name], name):
        outcome = check(replace(case, force=force))
        assert outcome.status == "same", told(*shrunk(replace(case, force=force), outcome, seconds=5))


@pytest.mark.parametrize("name", CLOCKS)
def test_a_query_with_a_clock_is_computed_anew(name: str) -> None:
    plan = analyse(CLOCKS[name], INFOS)
    assert plan.strategy == "full", plan.reason


@pytest.mark.parametrize("name", SPARK_ONLY)
def test_valid_spark_sql_is_never_refused(name: str) -> None:
    assert analyse(SPARK_ONLY[name], INFOS).inputs == ("silver.trips",)
