"""The columns of a run of slots: what each trip would be if nothing went wrong on the way.

All arithmetic is on integers (seconds, cents, hundredths of a mile), so the same seed gives the same trips anywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .city import DISTANCES, DROPOFFS, PICKUPS, PLACE, QUANTILES, normal_quantiles
from .draws import Lane, choices, wide
from .fares import FLEX_FARE, PAYMENTS, REFUND, Columns, add_money, rate_code
from .month import MONTH_SECONDS, MONTH_START, outside_places, pickup_seconds, wrong_clock

NULL_TOGETHER = ("passenger_count", "RatecodeID", "store_and_fwd_flag", "congestion_surcharge", "Airport_fee")
"""Missing together in 4.7 % of rows: exactly the flex fares (payment type 0)."""

_VENDORS = choices({1: 24.6, 2: 75.39, 6: 0.01}, np.int8)
_PASSENGERS = choices({1: 76.5, 2: 14.6, 3: 3.2, 4: 1.9, 5: 1.2, 6: 0.9, 0: 1.65, 8: 0.03, 9: 0.02}, np.int8)
_STORED = choices({0: 99.6, 1: 0.4}, np.int8)
# Tenths of a mile per hour in traffic, by hour of the day.
_PACE = np.array(
    [150, 158, 165, 172, 178, 172, 150, 118, 100, 96, 95, 93, 92, 91, 89, 87, 88, 89, 94, 104, 114, 121, 130, 141]
)
_PACE_SPREAD = np.rint(1_000 * np.exp(0.24 * normal_quantiles(256))).astype(np.int64)
_NORMAL, _ZERO_DISTANCE, _DAY_LONG, _ABSURD_SPEED, _BACKWARDS = range(5)
_ODDITIES = choices(
    {_NORMAL: 98.85, _ZERO_DISTANCE: 1.0, _DAY_LONG: 0.1, _ABSURD_SPEED: 0.05, _BACKWARDS: 0.002}, np.int8
)


def make_trips(slots: NDArray[np.int64], lap: int, lanes: NDArray[np.uint16]) -> Columns:
    """One trip per slot, in pickup order, as integer columns."""
    trips: Columns = {"slot": slots}
    _add_time(trips, lap, wide(lanes[:, 0], lanes[:, 1]))
    _add_route(trips, lanes[:, 2], lanes[:, 3], lanes[:, 4])
    _add_duration(trips, lanes[:, 5])
    _add_oddities(trips, lanes[:, 6], lanes[:, 7])
    payment = PAYMENTS[lanes[:, 8]]
    trips["payment_type"] = payment % REFUND
    trips["VendorID"] = _VENDORS[lanes[:, 9]]
    trips["passenger_count"] = _PASSENGERS[lanes[:, 10]]
    trips["store_and_fwd_flag"] = _STORED[lanes[:, 11]]
    places = PLACE[trips["PULocationID"]], PLACE[trips["DOLocationID"]]
    trips["RatecodeID"] = rate_code(*places, lanes[:, 12])
    add_money(trips, payment >= REFUND, lanes[:, 13], lanes[:, 14], lanes[:, 15])
    trips["missing"] = (trips["payment_type"] == FLEX_FARE).astype(np.int8)
    return trips


def _add_time(trips: Columns, lap: int, jitter: NDArray[np.int64]) -> None:
    slots = trips["slot"]
    due = pickup_seconds(slots, lap, jitter)
    pickup = due.copy()
    places = outside_places(lap)
    wrong = np.isin(slots % lap, places)
    ordinal = np.searchsorted(places, (slots % lap)[wrong])
    pickup[wrong] = wrong_clock(ordinal, jitter[wrong])
    trips["due"] = due + slots // lap * MONTH_SECONDS
    trips["pickup"], trips["outside"] = pickup, wrong.astype(np.int8)


def _add_route(trips: Columns, start: Lane, end: Lane, length: Lane) -> None:
    pickup = PICKUPS[start]
    dropoff = DROPOFFS[PLACE[pickup], end]
    trips["PULocationID"], trips["DOLocationID"] = pickup, dropoff
    trips["trip_distance"] = DISTANCES[PLACE[pickup], PLACE[dropoff], length // (65_536 // QUANTILES)]


def _add_duration(trips: Columns, lane: Lane) -> None:
    distance = trips["trip_distance"].astype(np.int64)
    hour = (trips["due"] - MONTH_START) // 3600 % 24
    pace = _PACE[hour] * np.where(distance > 600, 17, 10)  # long trips use the highways
    trips["duration"] = 75 + distance * 3_600_000 // (pace * _PACE_SPREAD[lane >> 8]) + (lane & 31)


def _add_oddities(trips: Columns, lane: Lane, size: Lane) -> None:
    oddity, size = _ODDITIES[lane], size.astype(np.int64)
    distance, duration = trips["trip_distance"], trips["duration"]
    distance = np.where(oddity == _ZERO_DISTANCE, 0, distance)
    distance = np.where(oddity == _ABSURD_SPEED, 1_000 + size % 9_000, distance)
    duration = np.where(oddity == _ABSURD_SPEED, 60 + size % 120, duration)
    duration = np.where(oddity == _DAY_LONG, 86_400 - size % 7_200, duration)
    duration = np.where(oddity == _BACKWARDS, -(size % 600), duration)
    trips["trip_distance"], trips["duration"] = distance.astype(np.int32), duration
