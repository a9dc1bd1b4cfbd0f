"""Dates and times from text, by the same rules as the contracts: a wall time and an instant are different things."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone

from lodestream.sources.codecs.codec import BrokenRow

_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
# Places after the sixth must be zeros: Spark keeps microseconds and would drop the rest.
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,6})0*)?)?"
    r"(?: ?(Z|[+-][0-9]{2}(?::?[0-9]{2})?))?"
)
_EPOCH = date(1970, 1, 1)


def day(text: str) -> date:
    """A date; ValueError when the text is not one."""
    match = _DAY.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return date(int(match[1]), int(match[2]), int(match[3]))


def wall_time(text: str) -> datetime:
    found = _moment(text)
    if found.tzinfo is not None:
        raise BrokenRow("has a zone")
    return found


def instant(text: str) -> datetime:
    found = _moment(text)
    if found.tzinfo is None:
        raise BrokenRow("has no zone")
    return found.astimezone(UTC)


def _moment(text: str) -> datetime:
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year, month, at_day, hour, minute, second = (int(part or 0) for part in match.group(1, 2, 3, 4, 5, 6))
    micros = int((match[7] or "").ljust(6, "0"))
    return datetime(year, month, at_day, hour, minute, second, micros, tzinfo=_zone(match[8]))


def _zone(text: str | None) -> timezone | None:
    if text is None or text == "Z":
        return UTC if text else None
    minutes = int(text[1:3]) * 60 + int(text[3:].lstrip(":") or 0)
    if minutes > 18 * 60 or int(text[3:].lstrip(":") or 0) > 59:
        raise ValueError(text)
    return timezone(timedelta(minutes=minutes if text[0] == "+" else -minutes))
