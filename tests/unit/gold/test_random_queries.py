"""Any valid query, whatever happens to its inputs: Gold kept by its plan equals the query itself.

The pieces of the plan run on DuckDB. `LODE_QUERIES=100000 LODE_SEED=7` makes it longer (or, with progress and every
failure shrunk, `python tests/gold_queries/long_run.py`).
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from query_check import Case, Outcome, case_of, check
from query_shrink import shrunk, told

QUERIES = int(os.environ.get("LODE_QUERIES", "2000"))
SEED = int(os.environ.get("LODE_SEED", "0"))
PARTS = 8  # so that every core has some


@pytest.fixture(scope="session")
def seed(testrun_uid: str) -> int:
    """The same in all processes of one run of the tests, another in the next."""
    return SEED or random.Random(testrun_uid).randrange(1, 10**9)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(max(600, QUERIES // 5))
def test_gold_equals_its_query_for_random_queries(part: int, seed: int) -> None:
    each = max(1, QUERIES // PARTS)
    went: Counter[str] = Counter()
    failed: list[tuple[Case, Outcome]] = []
    for number in range(part * each, (part + 1) * each):
        case = case_of(seed, number)
        outcome = check(case)
        went.update([outcome.status, outcome.strategy])
        if outcome.fault:
            failed.append((case, outcome))
    assert not failed, _said(failed, each)
    assert went["skipped"] <= each * 0.05, went
    if each >= 100:
        assert min(went["delta"], went["affected"], went["full"]) >= each * 0.1, went


def test_a_generated_query_has_no_two_columns_of_one_name() -> None:
    """A key that came from a subquery has the name of a ranking, and so has the ranking of this query itself."""
    case = case_of(20261117, 14315)
    assert "a.Place, " in case.sql
    assert check(case).status == "same"


def _said(failed: list[tuple[Case, Outcome]], queries: int) -> str:
    """The shortest failure, shrunk, and where the others are."""
    case, outcome = min(failed, key=lambda one: len(one[0].sql))
    others = ", ".join(one.seed for one, _ in failed)
    return f"{len(failed)} of {queries} queries ({others})\n{told(*shrunk(case, outcome))}"
