"""What a trip costs, in whole cents: the meter of 2024, surcharges, tolls, tips, refunds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .city import AT_EWR, AT_JFK, AT_LGA, MANHATTAN, PLACE
from .draws import Lane, choices
from .month import HOLIDAYS, MONTH_START

Columns = dict[str, NDArray[np.integer]]
MONEY = (
    "fare_amount",
    "extra",
    "mta_tax",
    "tip_amount",
    "tolls_amount",
    "improvement_surcharge",
    "total_amount",
    "congestion_surcharge",
    "Airport_fee",
)
FLEX_FARE, CARD, CASH, NO_CHARGE, DISPUTE = range(5)
REFUND = 8
"""Added to a payment type in PAYMENTS: the row is a refund, all its amounts negative."""

# Per cent. Flex fares (0) are the rows that lack passenger count, rate code, flag and two surcharges: 4.7 %.
# Refunds sum to 1.3 %.
PAYMENTS = choices(
    {
        FLEX_FARE: 4.7,
        CARD: 78.0,
        CASH: 14.5,
        NO_CHARGE: 0.55,
        DISPUTE: 0.95,
        CASH + REFUND: 0.45,
        NO_CHARGE + REFUND: 0.15,
        DISPUTE + REFUND: 0.70,
    },
    np.int8,
)
_TIP_PERCENT = choices({0: 6, 10: 5, 15: 8, 18: 7, 20: 31, 22: 6, 25: 20, 28: 8, 30: 8, 35: 1})
_STANDARD, _JFK_RATE, _NEWARK_RATE, _NEGOTIATED = 1, 2, 3, 5
RATE_CODES = choices({1: 98.2, 4: 0.2, 5: 0.7, 99: 0.9}, np.int8)


def rate_code(pickup: NDArray[np.integer], dropoff: NDArray[np.integer], lane: Lane) -> NDArray[np.integer]:
    """Flat rates follow the route; the rest is the meter, a few negotiated or unknown."""
    code = RATE_CODES[lane]
    jfk = ((pickup == AT_JFK) & (dropoff == MANHATTAN)) | ((pickup == MANHATTAN) & (dropoff == AT_JFK))
    code = np.where(jfk & (code == _STANDARD), _JFK_RATE, code)
    return np.where((dropoff == AT_EWR) & (code == _STANDARD), _NEWARK_RATE, code)


def add_money(trips: Columns, refund: NDArray[np.bool_], tip: Lane, toll: Lane, odd: Lane) -> None:
    """Fill in every amount of MONEY from route, time, payment and rate code."""
    pickup, dropoff = PLACE[trips["PULocationID"]], PLACE[trips["DOLocationID"]]
    airport = (pickup == AT_JFK) | (pickup == AT_LGA)
    trips["fare_amount"] = _fare(trips, odd)
    trips["extra"] = _extra(trips["pickup"]) + np.where(pickup == AT_LGA, 500, 0)
    trips["mta_tax"] = np.where(trips["RatecodeID"] == _NEWARK_RATE, 0, 50)
    trips["improvement_surcharge"] = np.full(len(pickup), 100)
    trips["congestion_surcharge"] = np.where((pickup == MANHATTAN) | (dropoff == MANHATTAN), 250, 0)
    trips["Airport_fee"] = np.where(airport, 175, 0)
    trips["tolls_amount"] = _tolls(pickup, dropoff, toll)
    for name in ("congestion_surcharge", "Airport_fee"):
        trips[name] = np.where(trips["payment_type"] == FLEX_FARE, 0, trips[name])
    trips["tip_amount"] = _tip(trips, refund, tip)
    trips["total_amount"] = sum((trips[name] for name in MONEY if name != "total_amount"), np.zeros(1, np.int64))
    sign = np.where(refund, -1, 1)
    for name in MONEY:
        trips[name] = (trips[name] * sign).astype(np.int32)


def _fare(trips: Columns, odd: Lane) -> NDArray[np.integer]:
    metered_seconds = np.clip(trips["duration"], 0, 3 * 3600)
    units = trips["trip_distance"] // 20 + metered_seconds * 42 // 6_000
    fare = 300 + 70 * units
    fare = np.where(trips["RatecodeID"] == _JFK_RATE, 7_000, fare)
    fare = np.where(trips["RatecodeID"] == _NEWARK_RATE, fare + 2_000, fare)
    fare = np.where(trips["RatecodeID"] == _NEGOTIATED, 1_000 + odd.astype(np.int64) % 140 * 100, fare)
    # Flex fares are quoted in advance: any cent.
    return np.where(trips["payment_type"] == FLEX_FARE, fare + odd % 100, fare)


def _extra(pickup: NDArray[np.integer]) -> NDArray[np.integer]:
    since = pickup - MONTH_START
    hour, day = since // 3600 % 24, since // 86_400
    workday = (day % 7 < 5) & ~np.isin(day + 1, HOLIDAYS)
    rush = workday & (hour >= 16) & (hour < 20)
    night = (hour >= 20) | (hour < 6)
    return np.where(rush, 250, np.where(night, 100, 0))


def _tolls(pickup: NDArray[np.integer], dropoff: NDArray[np.integer], lane: Lane) -> NDArray[np.integer]:
    from_airport = np.isin(pickup, (AT_JFK, AT_LGA)) & (dropoff == MANHATTAN)
    to_airport = (pickup == MANHATTAN) & np.isin(dropoff, (AT_JFK, AT_LGA))
    tunnel = (from_airport | to_airport) & (lane < 39_000)
    return np.where(dropoff == AT_EWR, 1_625, np.where(tunnel, 694, 0))


def _tip(trips: Columns, refund: NDArray[np.bool_], lane: Lane) -> NDArray[np.integer]:
    base = trips["fare_amount"] + trips["extra"] + trips["mta_tax"] + trips["congestion_surcharge"]
    tip = base * _TIP_PERCENT[lane].astype(np.int64) // 100
    return np.where((trips["payment_type"] == CARD) & ~refund, tip, 0)
