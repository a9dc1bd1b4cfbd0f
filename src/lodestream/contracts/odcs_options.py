"""What an ODCS property says of its values (logicalTypeOptions) and of how they are read (our `lode.` properties)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from lodestream.contracts import odcs_terms as terms
from lodestream.contracts import types
from lodestream.contracts.document import Place
from lodestream.contracts.model import Bound, Epoch, Limits, Reading, Rounding
from lodestream.contracts.moments import TEMPORAL


def read_options(
    entries: Mapping[str, Place], what: str, kind: types.Type, logical: str
) -> tuple[Limits, Reading, dict[str, Any]]:
    if "logicalTypeOptions" not in entries:
        return Limits(), Reading(), {}
    known = terms.LOGICAL_OPTIONS.get(logical, ())
    options = entries["logicalTypeOptions"].entries(f"logicalTypeOptions of {what}", known)
    limits = Limits(
        **_bound(options, "minimum", what),
        **_bound(options, "maximum", what),
        multiple_of=_number(options.get("multipleOf"), f"multipleOf of {what}"),
        min_length=_whole(options, "minLength", what),
        max_length=_whole(options, "maxLength", what),
        pattern=options["pattern"].text(f"pattern of {what}") if "pattern" in options else None,
        min_items=_whole(options, "minItems", what),
        max_items=_whole(options, "maxItems", what),
        unique_items="uniqueItems" in options and options["uniqueItems"].flag(f"uniqueItems of {what}"),
    )
    temporal = kind.name in TEMPORAL
    zone = options["defaultTimezone"].text("defaultTimezone") if "defaultTimezone" in options else None
    pattern = options["format"].text("format") if temporal and "format" in options else None
    left = {"minProperties", "maxProperties", "required", "timezone"} | (set() if temporal else {"format"})
    extras = {key: value.plain() for key, value in options.items() if key in left}
    return limits, Reading(zone=zone, format=pattern), extras


def _bound(options: Mapping[str, Place], side: str, what: str) -> dict[str, Any]:
    """v3.0.2 has `exclusiveMinimum: true` beside minimum, v3.1.0 has the value itself in exclusiveMinimum."""
    exclusive = f"exclusive{side.capitalize()}"
    value = options[side].plain() if side in options else None
    strict = options[exclusive].plain() if exclusive in options else False
    place = options.get(side) or options.get(exclusive)
    if isinstance(strict, bool):
        return {side: _comparable(value, place, f"{side} of {what}"), f"exclusive_{side}": strict}
    return {side: _comparable(strict, place, f"{exclusive} of {what}"), f"exclusive_{side}": True}


def _comparable(value: Any, place: Place | None, what: str) -> Bound | None:
    if value is None or (isinstance(value, int | float | str) and not isinstance(value, bool)):
        return value
    if place:
        place.wrong(f"{what} must be a number or a date")
    return None


def _number(place: Place | None, what: str) -> int | float | None:
    value = place.plain() if place else None
    if place and (isinstance(value, bool) or not isinstance(value, int | float) or value <= 0):
        place.wrong(f"{what} must be a number above 0")
        return None
    return value


def _whole(options: Mapping[str, Place], key: str, what: str) -> int | None:
    return options[key].whole(f"{key} of {what}") if key in options else None


def read_reading(own: Mapping[str, Place], base: Reading) -> Reading:
    return Reading(
        coerce="lode.coerce" in own and own["lode.coerce"].flag("lode.coerce"),
        rounding=cast("Rounding | None", _choice(own, "lode.rounding", ("half_up",))),
        epoch=cast("Epoch | None", _choice(own, "lode.epoch", ("s", "ms", "us"))),
        zone=own["lode.zone"].text("lode.zone") if "lode.zone" in own else base.zone,
        format=base.format,
        any_case="lode.anyCase" in own and own["lode.anyCase"].flag("lode.anyCase"),
        non_finite="lode.nonFinite" in own and own["lode.nonFinite"].flag("lode.nonFinite"),
    )


def _choice(own: Mapping[str, Place], key: str, choices: tuple[str, ...]) -> str | None:
    if key not in own:
        return None
    value = own[key].choice(key, choices)
    return value if value in choices else None
