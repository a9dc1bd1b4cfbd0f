"""Each change between two versions is named, judged in both directions, and comes with a way out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lodestream.contracts import Contract, Field, Limits, Masking, Reading, Rule, Threshold
from lodestream.contracts.compatibility import Change, breaking, changes, incompatible, next_version

FARE = Limits(minimum=0, maximum=500)
BASE = Contract(
    "trips",
    "2.1.0",
    (
        Field("id", "string", required=True),
        Field("fare", "decimal(10,2)", limits=FARE),
        Field("seats", "int"),
        Field("flag", "string", limits=Limits(values=("Y", "N"))),
        Field("place", "struct<lat:double,lon:double>"),
    ),
    keys=("id",),
    rules=(Rule("fare is not negative", "fare >= 0"),),
    lateness=None,
)


def with_field(name: str, **attributes: object) -> Contract:
    return replace(BASE, fields=tuple(replace(f, **attributes) if f.name == name else f for f in BASE.fields))  # type: ignore[arg-type]


def without(name: str) -> Contract:
    return replace(BASE, fields=tuple(f for f in BASE.fields if f.name != name))


def only(new: Contract) -> Change:
    (change,) = changes(BASE, new)
    return change


def plus(field: Field) -> Contract:
    return replace(BASE, fields=(*BASE.fields, field))


CASES = [
    # new contract, kind, path, backward, forward, severity
    (plus(Field("tip", "double")), "added", "tip", True, True, "safe"),
    (plus(Field("tip", "double", required=True)), "added", "tip", False, True, "breaking"),
    (without("seats"), "removed", "seats", True, False, "breaking"),
    (with_field("seats", type="bigint"), "widened", "seats", True, False, "careful"),
    (with_field("fare", type="decimal(12,2)"), "widened", "fare", True, False, "careful"),
    (with_field("fare", type="decimal(8,2)"), "narrowed", "fare", False, True, "breaking"),
    (with_field("fare", type="decimal(12,4)"), "type", "fare", False, False, "breaking"),
    (with_field("seats", type="smallint"), "narrowed", "seats", False, True, "breaking"),
    (with_field("seats", type="string"), "type", "seats", False, False, "breaking"),
    (with_field("id", required=False), "relaxed", "id", True, False, "breaking"),
    (with_field("seats", required=True), "required", "seats", False, True, "breaking"),
    (with_field("seats", unique=True), "unique", "seats", False, True, "breaking"),
    (with_field("flag", limits=Limits(values=("Y", "N", "U"))), "values", "flag", True, False, "careful"),
    (with_field("flag", limits=Limits(values=("Y",))), "values", "flag", False, True, "careful"),
    (with_field("flag", limits=Limits()), "values", "flag", True, False, "careful"),
    (with_field("fare", limits=Limits(minimum=1, maximum=500)), "minimum", "fare", False, True, "careful"),
    (with_field("fare", limits=Limits(minimum=0, maximum=900)), "maximum", "fare", True, False, "careful"),
    (with_field("fare", limits=replace(FARE, exclusive_maximum=True)), "maximum", "fare", False, True, "careful"),
    (with_field("fare", limits=replace(FARE, exclusive_minimum=True)), "minimum", "fare", False, True, "careful"),
    (with_field("id", masking=Masking("hash")), "masking", "id", False, False, "breaking"),
    (with_field("id", classification="pii"), "classification", "id", True, True, "safe"),
    (with_field("place", type="struct<lat:double,lon:double,alt:double>"), "added", "place.alt", True, True, "safe"),
    (with_field("place", type="struct<lat:float,lon:double>"), "narrowed", "place.lat", False, True, "breaking"),
    (replace(BASE, keys=("id", "seats")), "key", "keys", False, False, "breaking"),
    (replace(BASE, lateness=60.0), "lateness", "lateness", False, True, "careful"),
    (replace(BASE, freshness=5.0), "freshness", "freshness", True, True, "safe"),
]  # fmt: skip


@pytest.mark.parametrize(("new", "kind", "path", "backward", "forward", "severity"), CASES)
def test_a_change_of_a_field_is_judged_both_ways(
    new: Contract, kind: str, path: str, backward: bool, forward: bool, severity: str
) -> None:
    change = only(new)
    assert (change.kind, change.path) == (kind, path)
    assert (change.backward, change.forward, change.severity) == (backward, forward, severity)
    assert bool(incompatible(BASE, new, "backward")) is not backward
    assert bool(incompatible(BASE, new, "forward")) is not forward
    assert bool(incompatible(BASE, new, "full")) is not (backward and forward)
    assert bool(breaking(BASE, new)) is (severity == "breaking")


def rule(expression: str, action: str = "quarantine", threshold: Threshold | None = None) -> Contract:
    return replace(BASE, rules=(Rule("fare is not negative", expression, action, threshold),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("new", "tightened", "loosened"),
    [
        (rule("fare >= 0 AND seats > 0"), True, False),
        (rule("fare >= 1"), True, False),
        (rule("fare >= -1"), False, True),
        (rule("seats > 0"), True, True),
        (rule("fare >= 0", "warn"), False, True),
        (rule("fare >= 0", "fail"), False, False),
        (rule("fare >= 0", threshold=Threshold(5.0)), False, False),
        (rule("fare >= 0 AND flag = 'Y'"), True, False),
        (replace(BASE, rules=()), False, True),
        (replace(BASE, rules=(*BASE.rules, Rule("some seats", "seats > 0"))), True, False),
        (replace(BASE, rules=(*BASE.rules, Rule("some seats", "seats > 0", "warn"))), False, False),
    ],
)
def test_a_changed_rule_says_which_rows_it_moves(new: Contract, tightened: bool, loosened: bool) -> None:
    change = only(new)
    assert (not change.backward, not change.forward) == (tightened, loosened)


def test_spelling_of_a_rule_is_no_change() -> None:
    assert changes(BASE, rule("(FARE  >= 0) -- the same")) == ()


def test_a_literal_in_other_case_is_another_rule() -> None:
    old, new = rule("flag = 'Y'"), rule("FLAG = 'y'")
    (change,) = changes(old, new)
    assert (change.kind, change.backward, change.forward) == ("rule", False, False)
    assert changes(old, rule("`Flag` = 'Y'")) == ()
    (parsed,) = changes(rule("to_date(id, 'MM') > '1'"), rule("to_date(id, 'mm') > '1'"))
    assert parsed.kind == "rule"


def test_equal_contracts_have_no_changes() -> None:
    assert changes(BASE, replace(BASE, version="9.9.9", description="other words")) == ()


def test_a_rename_by_alias_is_one_change_and_keeps_the_rows() -> None:
    fields = tuple(replace(f, name="amount", aliases=("fare",)) if f.name == "fare" else f for f in BASE.fields)
    change = only(replace(BASE, fields=fields, rules=BASE.rules))
    assert (change.kind, change.path, change.backward, change.forward) == ("renamed", "fare", True, False)
    assert change.fix is not None
    assert "add amount beside it" in change.fix


def test_the_expand_step_of_a_rename_is_safe() -> None:
    both = plus(Field("amount", "decimal(10,2)", aliases=("fare",)))
    assert only(both).severity == "safe"


BENT = [
    # kind, type, the field's reading or source before and after
    ("zone", "timestamp", Reading(zone="UTC"), Reading(zone="Europe/Paris")),
    ("zone", "date", Reading(epoch="ms"), Reading(epoch="ms", zone="Europe/Paris")),
    ("epoch", "timestamp", Reading(epoch="s"), Reading(epoch="ms")),
    ("zone", "timestamp", Reading(), Reading(zone="Europe/Paris")),
    ("zone", "timestamp", Reading(zone="Europe/Paris"), Reading()),
    ("epoch", "timestamp", Reading(), Reading(epoch="ms")),
    ("epoch", "timestamp_ntz", Reading(), Reading(epoch="ms")),
    ("format", "date", Reading(format="dd/MM/yyyy"), Reading(format="MM/dd/yyyy")),
    ("format", "date", Reading(), Reading(format="yyyy-dd-MM")),
    ("format", "date", Reading(format="yyyy-dd-MM"), Reading()),
]


@pytest.mark.parametrize(("kind", "type_name", "before", "after"), BENT)
def test_equal_input_that_gives_other_values_breaks(kind: str, type_name: str, before: Reading, after: Reading) -> None:
    old, new = plus(Field("at", type_name, reading=before)), plus(Field("at", type_name, reading=after))
    (change,) = changes(old, new)
    assert (change.kind, change.severity, change.backward, change.forward) == (kind, "breaking", False, False)
    assert change.fix is not None
    assert "other values" in change.what


def test_a_value_taken_from_another_field_of_the_event_breaks() -> None:
    old = plus(Field("at", "string", source="pickup"))
    (moved,) = changes(old, plus(Field("at", "string", source="dropoff")))
    assert (moved.kind, moved.severity) == ("source", "breaking")
    assert "pickup to dropoff" in moved.what
    (taken,) = changes(BASE, with_field("seats", source="passengers"))
    assert (taken.kind, taken.severity) == ("source", "breaking")
    assert changes(old, plus(Field("at", "string", source="dropoff", aliases=("pickup",)))) == ()
    inner = Field("lat", "double", source="y")
    (nested,) = changes(BASE, with_field("place", fields=(inner, Field("lon", "double"))))
    assert (nested.kind, nested.path) == ("source", "place.lat")


@pytest.mark.parametrize(
    "allowed", [{"rounding": "half_up"}, {"coerce": True}, {"any_case": True}, {"non_finite": True}]
)
def test_input_that_is_taken_now_or_no_longer_is_said(allowed: dict[str, object]) -> None:
    loose = with_field("fare", reading=Reading(**allowed))  # type: ignore[arg-type]
    (loosened,) = changes(BASE, loose)
    assert (loosened.backward, loosened.forward, loosened.severity) == (True, False, "careful")
    (tightened,) = changes(loose, BASE)
    assert (tightened.backward, tightened.forward, tightened.severity) == (False, True, "careful")
    assert next_version(BASE, loose) == "2.2.0"


def test_the_next_version_follows_the_gravest_change() -> None:
    assert next_version(BASE, BASE) == "2.1.0"
    assert next_version(BASE, plus(Field("tip", "double"))) == "2.2.0"
    assert next_version(BASE, without("seats")) == "3.0.0"


def test_every_breaking_change_of_a_column_says_the_way_out() -> None:
    for new, *_ in CASES:
        for change in breaking(BASE, new):
            assert change.fix, change
