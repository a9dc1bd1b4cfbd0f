"""Durations as people write them: "200 ms", "1 s", "15 min"."""

from __future__ import annotations

import re

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
_SECONDS = {
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "min": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "days": 86400.0,
}


def parse_duration(text: str) -> float:
    """Seconds of "200 ms", "1 s", "15 min", "6 h" or "2 days"; ValueError says what is wrong."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is not a duration: write a number and a unit, such as "1 s" or "15 min"')
    unit = match[2].lower()
    if unit not in _SECONDS:
        raise ValueError(f'"{text}" has the unknown unit "{match[2]}": use ms, s, min, h or d')
    return float(match[1]) * _SECONDS[unit]


def format_duration(seconds: float) -> str:
    """The shortest exact way to write it: 0.2 is "200 ms", 900 is "15 min"."""
    for unit in ("d", "h", "min", "s"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:.12g} {unit}"
    return f"{seconds * 1000:.12g} ms" if seconds < 1 else f"{seconds:.12g} s"
