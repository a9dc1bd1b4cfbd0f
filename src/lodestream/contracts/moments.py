"""Dates and times as SQL. A wall time and an instant are different things: only a stated zone joins them.

Nothing here asks for the zone of the session: on the way through it, an instant in the hour that clocks repeat there
would come back as another one.
"""

from __future__ import annotations

import re

from lodestream.contracts import quoting
from lodestream.contracts.model import Reading
from lodestream.contracts.types import TEMPORAL, Type

_DAY = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
# Places after the sixth must be zeros: Spark keeps microseconds and drops the rest.
_CLOCK = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,6}0*)?)?"
_OFFSET = r" ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_YEAR_1, _YEAR_10000 = -62135596800, 253402300800
_EPOCH, _MICROSECOND = "TIMESTAMP_NTZ'1970-01-01 00:00:00'", "INTERVAL '0.000001' SECOND"
_UNITS = {"s": (1, "timestamp_seconds"), "ms": (1_000, "timestamp_millis"), "us": (1_000_000, "timestamp_micros")}


def instant(wall: str, zone: str) -> str:
    """The moment at which clocks in the zone show the wall time."""
    return _instant_in_utc(f"convert_timezone({quoting.text(zone)}, 'UTC', {wall})")


def wall_time(moment: str, zone: str) -> str:
    """What clocks in the zone show at the moment."""
    return f"convert_timezone('UTC', {quoting.text(zone)}, {_wall_in_utc(moment)})"


def _instant_in_utc(wall: str) -> str:
    return f"cast(concat(cast({wall} AS string), 'Z') AS timestamp)"


def _wall_in_utc(moment: str) -> str:
    return f"({_EPOCH} + {_MICROSECOND} * unix_micros({moment}))"


def skips(zone: str) -> bool:
    """Whether clocks in the zone may be put forward."""
    return zone.upper() not in ("UTC", "GMT", "Z", "ETC/UTC")


def between(value: str, incoming: Type, wanted: Type, zone: str | None) -> tuple[str, str] | None:
    """Value and failure of one kind of moment as another, or None where that needs a zone."""
    match (incoming.name, wanted.name):
        case ("date", "timestamp_ntz"):
            return f"cast({value} AS timestamp_ntz)", "false"
        case ("timestamp_ntz", "date"):
            return f"cast({value} AS date)", _not_midnight(value)
        case ("timestamp_ntz" | "date", "timestamp") if zone:
            wall = f"cast({value} AS timestamp_ntz)"
            return instant(wall, zone), _skipped(wall, zone)
        case ("timestamp", "timestamp_ntz") if zone:
            return wall_time(value, zone), "false"
        case ("timestamp", "date") if zone:
            wall = wall_time(value, zone)
            return f"cast({wall} AS date)", _not_midnight(wall)
    return None


def why(incoming: Type, wanted: Type) -> str:
    if incoming.name in TEMPORAL:
        return f"{incoming} to {wanted} depends on the time zone; declare lode.zone"
    if incoming.numeric:
        return f"{incoming} is not converted to {wanted}; declare lode.epoch"
    return f"{incoming} is not converted to {wanted}"


def _not_midnight(wall: str) -> str:
    return f"coalesce(date_trunc('DAY', {wall}) <> {wall}, false)"


def _skipped(wall: str, zone: str) -> str:
    """True for wall times that do not exist because clocks were put forward over them."""
    if not skips(zone):
        return "false"
    return f"coalesce({wall_time(instant(wall, zone), zone)} <> {wall}, false)"


def from_epoch(whole: str, wanted: Type, reading: Reading) -> str:
    """A count since 1970 as a moment; null outside the years 1 to 9999, where Spark's functions would overflow."""
    scale, function = _UNITS[reading.epoch or "ms"]
    moment = _epoch_instant(whole, scale, function)
    if wanted.name == "timestamp":
        return moment
    return f"cast({wall_time(moment, reading.zone or 'UTC')} AS {wanted})"


def _epoch_instant(whole: str, scale: int, function: str) -> str:
    low, high = _YEAR_1 * scale, _YEAR_10000 * scale
    return f"CASE WHEN {whole} >= {low}L AND {whole} < {high}L THEN {function}({whole}) END"


def day_only(whole: str, wanted: Type, reading: Reading) -> tuple[str, ...]:
    """For a date: the condition that the epoch is not the start of a day."""
    if wanted.name != "date":
        return ()
    scale, function = _UNITS[reading.epoch or "ms"]
    return (_not_midnight(wall_time(_epoch_instant(whole, scale, function), reading.zone or "UTC")),)


def from_text(value: str, wanted: Type, reading: Reading) -> tuple[str, str]:
    """Value and failure of ISO 8601 text, or of the contract's own format."""
    if reading.format:
        return _formatted(value, wanted, reading.format, reading.zone)
    text = f"trim({value})"
    if wanted.name == "date":
        return f"try_cast({text} AS date)", _unlike(text, f"^{_DAY}$")
    clock = f"^{_DAY}" + (f"([T ]{_CLOCK})?" if reading.coerce else f"[T ]{_CLOCK}")
    return _wall_text(text, clock, reading) if wanted.name == "timestamp_ntz" else _instant_text(text, clock, reading)


def _wall_text(text: str, clock: str, reading: Reading) -> tuple[str, str]:
    plain = f"try_cast({_dotted(text)} AS timestamp_ntz)"
    if reading.zone is None:
        return plain, _unlike(text, f"{clock}$")
    zoned = wall_time(_with_offset(text), reading.zone)
    value = f"CASE WHEN {_like(text, clock + '$')} THEN {plain} ELSE {zoned} END"
    return value, f"{_unlike(text, f'{clock}({_OFFSET})?$')} OR {_beyond(text, _instant_in_utc(value))}"


def _instant_text(text: str, clock: str, reading: Reading) -> tuple[str, str]:
    zoned = _with_offset(text)
    if reading.zone is None:
        return zoned, f"{_unlike(text, f'{clock}{_OFFSET}$')} OR {_beyond(text, zoned)}"
    wall = f"try_cast({_dotted(text)} AS timestamp_ntz)"
    plain = _like(text, clock + "$")
    value = f"CASE WHEN {plain} THEN {instant(wall, reading.zone)} ELSE {zoned} END"
    skipped = _skipped(wall, reading.zone)
    failed = f"{_unlike(text, f'{clock}({_OFFSET})?$')} OR {_beyond(text, value)}"
    return value, failed if skipped == "false" else f"{failed} OR ({plain} AND {skipped})"


def _beyond(text: str, moment: str) -> str:
    """True where an offset moves a text of the first or the last year into one that has no name."""
    return f"coalesce(left({text}, 4) IN ('0001', '9999') AND NOT {_named(moment)}, false)"


def _named(moment: str) -> str:
    """Whether an instant is in the years 1 to 9999, as everybody else's are."""
    return f"(unix_micros({moment}) >= {_YEAR_1 * 1_000_000}L AND unix_micros({moment}) < {_YEAR_10000 * 1_000_000}L)"


def _formatted(value: str, wanted: Type, pattern: str, zone: str | None) -> tuple[str, str]:
    """Text in a stated pattern. Without zone letters it gives a wall time, with them an instant."""
    incoming = Type("timestamp" if _has_zone(pattern) else "timestamp_ntz")
    if incoming.name == "timestamp":
        found = f"try_to_timestamp({value}, {quoting.text(pattern)})"
    else:  # Spark reads wall times as those of some zone: in UTC no hour is skipped
        found = _wall_in_utc(f"try_to_timestamp(concat({value}, ' Z'), {quoting.text(pattern + ' X')})")
    strange = f"coalesce(NOT {_named(_as_instant(found, incoming))}, false)"
    if incoming == wanted:
        return found, strange
    converted = between(found, incoming, wanted, zone)
    return (converted[0], f"{strange} OR {converted[1]}") if converted else (f"cast(NULL AS {wanted})", "false")


def _as_instant(moment: str, kind: Type) -> str:
    return moment if kind.name == "timestamp" else _instant_in_utc(moment)


def _has_zone(pattern: str) -> bool:
    return bool(set("VzOXxZ") & set(re.sub(r"'[^']*'", "", pattern)))


def _dotted(text: str) -> str:
    return f"replace({text}, ',', '.')"


def _with_offset(text: str) -> str:
    """Spark reads an offset only behind seconds."""
    seconds = f"concat(left({text}, 16), ':00', substring({text}, 17))"
    whole = f"CASE WHEN substring({text}, 17, 1) = ':' THEN {_dotted(text)} ELSE {seconds} END"
    return f"try_cast({whole} AS timestamp)"


def _like(text: str, pattern: str) -> str:
    return f"{text} RLIKE {quoting.text(pattern)}"


def _unlike(text: str, pattern: str) -> str:
    return f"coalesce(NOT ({_like(text, pattern)}), false)"
