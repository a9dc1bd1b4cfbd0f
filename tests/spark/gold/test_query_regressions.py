"""What once went wrong stays right: each query over many histories, in each way a table can be kept."""

from __future__ import annotations

import pytest
from query_check import cases_of, cases_with, check
from query_regressions import CLOCKS, REGRESSIONS, SCENARIOS, SPARK_ONLY
from query_shrink import shrunk, told
from query_tables import INFOS

from lodestream.pipeline.gold import analyse

HISTORIES = 15


@pytest.mark.parametrize("name", REGRESSIONS)
def test_gold_equals_the_query(name: str) -> None:
    for case in cases_of(REGRESSIONS[name], HISTORIES):
        outcome = check(case)
        assert outcome.status == "same", told(*shrunk(case, outcome, seconds=5))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_gold_equals_the_query_when(scenario: str) -> None:
    name, given = SCENARIOS[scenario]
    for case in cases_with(REGRESSIONS[name], given):
        outcome = check(case)
        assert outcome.status == "same", told(case, outcome)


@pytest.mark.parametrize("name", CLOCKS)
def test_a_query_with_a_clock_is_computed_anew(name: str) -> None:
    plan = analyse(CLOCKS[name], INFOS)
    assert plan.strategy == "full", plan.reason


@pytest.mark.parametrize("name", SPARK_ONLY)
def test_valid_spark_sql_is_never_refused(name: str) -> None:
    assert analyse(SPARK_ONLY[name], INFOS).inputs == ("silver.trips",)
