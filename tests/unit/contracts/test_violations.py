"""What the conditions say without running them."""

from __future__ import annotations

import pytest

from lodestream.contracts import Contract, Field, Limits, Masking, Rule, conform

PHONE = Field("phone", "string", masking=Masking("last", 4), limits=Limits(max_length=12))


def test_a_masked_value_is_not_shown_even_when_it_is_wrong() -> None:
    nested = Field("person", "struct<phone:string>", fields=(PHONE,))
    contract = Contract("t", "1.0.0", (PHONE, nested), rules=(Rule("dutch", "phone like '+31%'", column="phone"),))
    assert [one.shown for one in contract.violations()] == [None, None, None]
    assert [one.failed.shown for one in conform(contract, {"phone": "int", "person": "string"})] == [None, None]


def test_other_values_are_shown() -> None:
    contract = Contract("t", "1.0.0", (Field("code", "string", limits=Limits(max_length=2)),))
    assert [one.shown for one in contract.violations()] == ["left(cast(`code` AS string), 80)"]


def test_a_key_is_required_whatever_the_field_says() -> None:
    contract = Contract("t", "1.0.0", (Field("a", "int"), Field("b", "int")), keys=("a",))
    assert [one.reason for one in contract.violations()] == ["a is null"]


def test_lateness_is_only_judged_where_the_arrival_is_known() -> None:
    contract = Contract("t", "1.0.0", (Field("at", "timestamp"),), event_time="at", lateness=60.0)
    assert contract.violations() == ()
    assert [one.reason for one in contract.violations(arrival="now()")] == ["late"]


@pytest.mark.parametrize(
    ("limit", "literal"),
    [
        ("2024-01-31", "TIMESTAMP'2024-01-31T00:00:00Z'"),
        ("2024-11-03 01:30:00", "TIMESTAMP'2024-11-03T01:30:00Z'"),
        ("2024-11-03T01:30:00-04:00", "TIMESTAMP'2024-11-03T01:30:00-04:00'"),
    ],
)
def test_a_limit_of_an_instant_means_utc_unless_it_names_a_zone(limit: str, literal: str) -> None:
    contract = Contract("t", "1.0.0", (Field("at", "timestamp", limits=Limits(minimum=limit)),))
    (found,) = contract.violations()
    assert literal in found.sql
