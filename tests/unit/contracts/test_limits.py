"""A limit is one declaration: each one goes through every form of a contract, the next one too."""

from __future__ import annotations

import pytest

from lodestream.contracts import Contract, Field, Limits, contract_yaml, parse_contract, python_source
from lodestream.contracts.check import check
from lodestream.contracts.limit_changes import compare_limits
from lodestream.contracts.limits import DECLARED, Limit, judging, limits_by_word
from lodestream.contracts.odcs_terms import LOGICAL_OPTIONS, SPARK_OF
from lodestream.contracts.python_source import source

SAMPLES = {"whole": 2, "positive": 2, "text": "^a$", "flag": True, "bound": 2, "exclusive": True}
JUDGING = pytest.mark.parametrize("one", list(judging()), ids=lambda one: one.name)
WRITTEN = pytest.mark.parametrize("one", list(limits_by_word().values()), ids=lambda one: one.name)


def sample(one: Limit) -> object:
    return ("x", "y") if one.order == "list" else SAMPLES[one.spelling]


def limited(one: Limit) -> Contract:
    kind = SPARK_OF[one.of[0]] if one.of else "string"
    return Contract("t", "1.0.0", (Field("a", kind, limits=Limits(**{one.name: sample(one)})),))


@WRITTEN
def test_its_word_is_known_for_its_types_and_no_other(one: Limit) -> None:
    assert {logical for logical, words in LOGICAL_OPTIONS.items() if one.odcs in words} == set(one.of)


@WRITTEN
def test_what_is_written_is_read_again(one: Limit) -> None:
    text = contract_yaml(limited(one))
    assert f"{one.odcs}:" in text
    assert parse_contract(text) == limited(one)


@JUDGING
def test_a_value_that_breaks_it_is_refused_with_a_reason(one: Limit) -> None:
    (violation,) = limited(one).violations()
    assert violation.kind == "limit"
    assert violation.reason.startswith("a ")
    assert "`a`" in violation.sql


@JUDGING
def test_a_new_one_tightens_and_a_removed_one_loosens(one: Limit) -> None:
    none, some = Limits(), Limits(**{one.name: sample(one)})
    assert [change[2:] for change in compare_limits(none, some)] == [(True, False)]
    assert [change[2:] for change in compare_limits(some, none)] == [(False, True)]


@pytest.mark.parametrize("one", DECLARED.values(), ids=lambda one: one.name)
def test_it_fits_its_own_type_and_is_an_option_of_a_column(one: Limit) -> None:
    assert check(limited(one)) == []
    assert f"{one.name}={source(sample(one))}" in python_source(limited(one))


@pytest.mark.parametrize("one", DECLARED.values(), ids=lambda one: one.name)
def test_it_judges_values_or_stands_beside_one_that_does(one: Limit) -> None:
    assert one.broken or one.name in {other.exclusive for other in judging()}


def test_a_fault_of_two_bounds_is_said_once() -> None:
    contract = Contract("t", "1.0.0", (Field("a", "string", limits=Limits(minimum=1, maximum=2)),))
    assert [problem.what for problem in check(contract)] == ["a: minimum and maximum do not fit a string"]


def test_a_value_that_breaks_several_has_its_reasons_in_one_order() -> None:
    limits = Limits(values=("x",), min_length=2, max_length=3, pattern="^a$")
    contract = Contract("t", "1.0.0", (Field("a", "string", limits=limits),))
    assert [one.reason for one in contract.violations()] == [
        "a is not one of x",
        "a does not match ^a$",
        "a is shorter than 2",
        "a is longer than 3",
    ]
