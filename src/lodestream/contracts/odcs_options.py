"""What an ODCS property says of its values (logicalTypeOptions) and of how they are read (our `lode.` properties)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from lodestream.contracts import odcs_terms as terms
from lodestream.contracts import types
from lodestream.contracts.document import Entry
from lodestream.contracts.limits import DECLARED, Limits, Spelling, limits_by_word
from lodestream.contracts.model import Epoch, Reading, Rounding


def read_options(
    entries: Mapping[str, Entry], what: str, kind: types.Type, logical: str
) -> tuple[Limits, Reading, dict[str, Any]]:
    if "logicalTypeOptions" not in entries:
        return Limits(), Reading(), {}
    known = terms.LOGICAL_OPTIONS.get(logical, ())
    options = entries["logicalTypeOptions"].entries(f"logicalTypeOptions of {what}", known)
    temporal = kind.name in types.TEMPORAL
    zone = options["defaultTimezone"].text("defaultTimezone") if "defaultTimezone" in options else None
    pattern = options["format"].text("format") if temporal and "format" in options else None
    read = {"defaultTimezone", "format"} if temporal else {"defaultTimezone"}
    left = set(terms.OTHER_OPTIONS.get(logical, ())) - read - limits_by_word().keys()
    extras = {key: value.plain() for key, value in options.items() if key in left}
    return _limits(options, what), Reading(zone=zone, format=pattern), extras


def _limits(options: Mapping[str, Entry], what: str) -> Limits:
    stated = {
        one.name: _READ[one.spelling](options[word], f"{word} of {what}")
        for word, one in limits_by_word().items()
        if word in options
    }
    for one in DECLARED.values():
        # v3.0.2 has `exclusiveMinimum: true` beside minimum, v3.1.0 has the value itself in exclusiveMinimum.
        if one.exclusive and not isinstance(stated.get(one.exclusive, False), bool):
            stated |= {one.name: stated[one.exclusive], one.exclusive: True}
    return Limits(**stated)


def _bound(entry: Entry, what: str) -> Any:
    value = entry.plain()
    if value is None or (isinstance(value, int | float | str) and not isinstance(value, bool)):
        return value
    entry.wrong(f"{what} must be a number or a date")
    return None


def _exclusive(entry: Entry, what: str) -> Any:
    value = entry.plain()
    return value if isinstance(value, bool) else _bound(entry, what)


def _positive(entry: Entry, what: str) -> Any:
    value = entry.plain()
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        entry.wrong(f"{what} must be a number above 0")
        return None
    return value


_READ: dict[Spelling, Callable[[Entry, str], Any]] = {
    "whole": Entry.whole,
    "positive": _positive,
    "text": Entry.text,
    "flag": Entry.flag,
    "bound": _bound,
    "exclusive": _exclusive,
}


def read_reading(own: Mapping[str, Entry], base: Reading) -> Reading:
    return Reading(
        coerce="lode.coerce" in own and own["lode.coerce"].flag("lode.coerce"),
        rounding=cast("Rounding | None", _choice(own, "lode.rounding", ("half_up",))),
        epoch=cast("Epoch | None", _choice(own, "lode.epoch", ("s", "ms", "us"))),
        zone=own["lode.zone"].text("lode.zone") if "lode.zone" in own else base.zone,
        format=base.format,
        any_case="lode.anyCase" in own and own["lode.anyCase"].flag("lode.anyCase"),
        non_finite="lode.nonFinite" in own and own["lode.nonFinite"].flag("lode.nonFinite"),
    )


def _choice(own: Mapping[str, Entry], key: str, choices: tuple[str, ...]) -> str | None:
    if key not in own:
        return None
    value = own[key].choice(key, choices)
    return value if value in choices else None
