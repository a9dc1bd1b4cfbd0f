"""Limits stop a flow at the right batch, with a message that says what to do."""

from __future__ import annotations

import pytest

from lodestream.contracts import Contract, Field, Rule, Threshold
from lodestream.contracts.refusal import violation
from lodestream.contracts.thresholds import Tally, breaches, longest_window


def contract(*rules: Rule, limit: str | None = None) -> Contract:
    fields = (Field("fare_amount", "double", required=True),)
    return Contract("trips", "2.1.0", fields, rules=rules, limit=Threshold.parse(limit) if limit else None)


def test_the_message_reads_like_the_style_guide() -> None:
    stated = contract(limit="5 %")
    tally = Tally(at=0, rows=1000, refused=312, reasons={"fare_amount is null": 312})
    (breach,) = breaches(stated, [tally])
    error = violation("silver.trips", stated, 41, tally, breach)
    assert str(error) == (
        "silver.trips refused 312 of 1,000 rows in batch 41 (31 %, limit 5 %)\n"
        "  why: fare_amount is null in 312 rows; contract trips 2.1.0 requires it\n"
        "  fix: lode dead show silver.trips --batch 41, then lode dead replay silver.trips"
    )
    assert (error.table, error.batch, error.rows, error.refused) == ("silver.trips", 41, 1000, 312)
    assert error.exit_code == 4


def test_several_reasons_are_counted_largest_first() -> None:
    stated = contract(limit="1 %")
    reasons = {"fare_amount is null": 1, "rule: fare is paid": 7, "late": 3, "x is null": 2}
    tally = Tally(at=0, rows=100, refused=11, reasons=reasons)
    (breach,) = breaches(stated, [tally])
    assert violation("silver.trips", stated, 1, tally, breach).why == (
        "'fare is paid' does not hold in 7 rows, 3 rows came too late, x is null in 2 rows and 1 more"
        "; contract trips 2.1.0 requires otherwise"
    )


@pytest.mark.parametrize(("refused", "stops"), [(50, False), (51, True), (0, False)])
def test_the_limit_itself_is_still_allowed(refused: int, stops: bool) -> None:
    assert bool(breaches(contract(limit="5 %"), [Tally(0, 1000, refused)])) is stops


def test_a_fail_rule_without_a_limit_stops_at_one_row() -> None:
    stated = contract(Rule("paid", "fare_amount > 0", "fail"))
    assert breaches(stated, [Tally(0, 10**6, 0, {})]) == ()
    assert len(breaches(stated, [Tally(0, 10**6, 1, {"rule: paid": 1})])) == 1


def test_quarantine_without_a_limit_and_warnings_never_stop() -> None:
    rules = (Rule("paid", "fare_amount > 0"), Rule("nice", "fare_amount < 9", "warn", Threshold(0.0)))
    assert breaches(contract(*rules), [Tally(0, 10, 10, {"rule: paid": 10, "rule: nice": 10})]) == ()


def test_a_limit_over_time_counts_the_batches_of_that_time() -> None:
    stated = contract(Rule("paid", "fare_amount > 0", "fail", Threshold.parse("5 % over 1 min")))
    bad = Tally(100.0, 100, 20, {"rule: paid": 20})
    good = [Tally(100.0 + second, 100, 0, {}) for second in (10, 20, 30)]
    assert breaches(stated, [*good[:1], bad])[0].percent == 10
    assert breaches(stated, [bad, *good]) == ()
    last = Tally(165.0, 100, 6, {"rule: paid": 6})
    assert breaches(stated, [bad, last])[0].broken == 6, "the bad batch is more than a minute old"
    assert longest_window(stated) == 60


def test_an_empty_batch_breaks_nothing() -> None:
    assert breaches(contract(limit="0 %"), [Tally(0, 0, 0)]) == ()
    assert breaches(contract(limit="0 %"), []) == ()


@pytest.mark.parametrize("text", ["5", "5%%", "101 %", "-1 %", "5 % over", "5 % over soon", "% over 1 min"])
def test_wrong_limits_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Threshold.parse(text)


@pytest.mark.parametrize("text", ["5 %", "0.5 % over 1 min", "100 % over 200 ms"])
def test_limits_are_written_as_they_are_read(text: str) -> None:
    assert str(Threshold.parse(text)) == text
