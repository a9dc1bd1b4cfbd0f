"""When trips start: the rhythm of January 2024 by hour and weekday, and the few clocks that are wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MONTH_START = int(np.datetime64("2024-01-01T00:00:00", "s").astype(np.int64))
MONTH_END = int(np.datetime64("2024-02-01T00:00:00", "s").astype(np.int64))
MONTH_SECONDS = MONTH_END - MONTH_START
MONTH_TRIPS = 2_964_624
OUTSIDE_TRIPS = 18
HOLIDAYS = (1, 15)
_DAYS = 31

# Share of a day's pickups per hour, working days and weekends: the evening peak, and the nights out.
_WORKDAY = (15, 9, 6, 4, 4, 7, 17, 34, 45, 45, 46, 49, 52, 54, 57, 60, 61, 68, 72, 63, 54, 51, 43, 27)
_WEEKEND = (51, 42, 32, 22, 13, 8, 9, 12, 20, 32, 43, 51, 56, 58, 59, 58, 57, 58, 59, 54, 47, 46, 46, 42)
# Monday first. January 1st was a Monday.
_DAY_WEIGHT = (85, 97, 104, 108, 106, 107, 88)
_HOLIDAY_WEIGHT = {1: 0.86, 15: 0.88}
# The instants real meters have shown in a January file.
_WRONG_CLOCKS = np.array(
    ["2023-12-31T23:41:02", "2002-12-31T22:59:39", "2024-02-01T00:01:15", "2009-01-01T00:24:09", "2023-12-31T23:56:45"],
    dtype="datetime64[s]",
).astype(np.int64)


def _hour_weights() -> NDArray[np.float64]:
    hours = np.empty((_DAYS, 24))
    for index in range(_DAYS):
        weekday, day = index % 7, index + 1
        shape = np.array(_WEEKEND if weekday >= 5 or day in HOLIDAYS else _WORKDAY, dtype=np.float64)
        growth = 0.94 + 0.004 * index  # the city comes back slowly after the holidays
        hours[index] = shape / shape.sum() * _DAY_WEIGHT[weekday] * _HOLIDAY_WEIGHT.get(day, 1.0) * growth
    return hours.reshape(-1)


_CUMULATIVE = np.concatenate(([0.0], np.cumsum(_hour_weights())))
_CUMULATIVE /= _CUMULATIVE[-1]
_HOUR_STARTS = MONTH_START + 3600.0 * np.arange(_DAYS * 24 + 1)


def pickup_seconds(slots: NDArray[np.integer], lap: int, jitter: NDArray[np.int64]) -> NDArray[np.int64]:
    """Epoch seconds of each slot: `lap` slots walk once through the month, never backwards within a lap."""
    place = ((slots % lap) + jitter / 2.0**32) / lap
    seconds: NDArray[np.int64] = np.interp(place, _CUMULATIVE, _HOUR_STARTS).astype(np.int64)
    return np.minimum(seconds, MONTH_END - 1)


def outside_places(lap: int) -> NDArray[np.int64]:
    """Places in a lap whose clock is wrong: 18 in 2,964,624, at least 3 from 1,000 on, none below."""
    count = round(OUTSIDE_TRIPS * lap / MONTH_TRIPS)
    count = max(count, 3) if lap >= 1_000 else 0
    ordinal = np.arange(count, dtype=np.int64)
    return (2 * ordinal + 1) * lap // max(2 * count, 1)


def wrong_clock(ordinal: NDArray[np.int64], jitter: NDArray[np.int64]) -> NDArray[np.int64]:
    """Epoch seconds for the wrong clocks: the known instants in turn, up to 40 seconds later."""
    clocks: NDArray[np.int64] = _WRONG_CLOCKS[ordinal % len(_WRONG_CLOCKS)] + jitter % 40
    return clocks


def in_month(seconds: NDArray[np.integer]) -> NDArray[np.bool_]:
    return (seconds >= MONTH_START) & (seconds < MONTH_END)
