"""What goes wrong on the way: each kind of dirt takes a stated share of the slots.

A copy (duplicate, correction, delete) refers to an earlier slot of its own block, nearer ones more often, so a slot
can be made without knowing more of the stream than its block.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .draws import wide
from .fares import Columns
from .month import MONTH_END, MONTH_START

TRIP, LATE, OUT_OF_ORDER, CORRECTION, DELETE, DUPLICATE, MALFORMED = range(7)
CREATED, UPDATED, DELETED = range(3)
_MIDDLE = (MONTH_START + MONTH_END) // 2

Kinds = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Dirt:
    """Share of all events, 0 to 1, for each kind of dirt. An event is of one kind."""

    duplicates: float = 0.0
    late: float = 0.0
    out_of_order: float = 0.0
    corrections: float = 0.0
    deletes: float = 0.0
    malformed: float = 0.0

    def __post_init__(self) -> None:
        shares = [getattr(self, field.name) for field in fields(self)]
        if min(shares) < 0 or sum(shares) > 0.9:
            raise ValueError(f"each share of dirt must be 0 or more and their sum at most 0.9, not {self}")

    @property
    def keyed(self) -> bool:
        """Corrections or deletes are on: every event carries trip_uid, op and updated_at."""
        return self.corrections > 0 or self.deletes > 0


ALL_DIRT = Dirt(duplicates=0.01, late=0.02, out_of_order=0.05, corrections=0.01, deletes=0.005, malformed=0.002)


def soil(trips: Columns, dirt: Dirt, lanes: NDArray[np.uint16]) -> Kinds:
    """Turn some slots into dirt, in place. Returns the kind of each; malformed ones are spoiled after encoding."""
    kinds = _assign(dirt, wide(lanes[:, 16], lanes[:, 17]))
    kinds[trips["outside"] == 1] = TRIP  # few as they are, the wrong clocks must show up
    _delay(trips, kinds, lanes[:, 20])
    trips["trip_uid"] = trips["slot"].copy()
    trips["op"] = np.full(len(kinds), CREATED, dtype=np.int8)
    trips["updated_at"] = trips["pickup"] + np.maximum(trips["duration"], 0)
    nearness = (wide(lanes[:, 18], lanes[:, 19]) / 2.0**32) ** 2
    _change(trips, kinds, nearness, lanes[:, 20], lanes[:, 21])
    _repeat(trips, kinds, nearness)
    return kinds


def _assign(dirt: Dirt, lane: NDArray[np.int64]) -> Kinds:
    shares = {
        LATE: dirt.late,
        OUT_OF_ORDER: dirt.out_of_order,
        CORRECTION: dirt.corrections,
        DELETE: dirt.deletes,
        DUPLICATE: dirt.duplicates,
        MALFORMED: dirt.malformed,
    }
    edges = np.cumsum(list(shares.values())) * 2.0**32
    return np.array([*shares, TRIP], dtype=np.int8)[np.searchsorted(edges, lane, side="right")]


def _delay(trips: Columns, kinds: Kinds, lane: NDArray[np.uint16]) -> None:
    """A late trip began 10 minutes to 21 hours before its neighbours, one out of order up to 10 minutes."""
    size = lane.astype(np.int64)
    lag = np.where(kinds == LATE, (600 << (size >> 13)) + size % 600, 1 + size % 599)
    moved = (kinds == LATE) | (kinds == OUT_OF_ORDER)
    too_early = moved & (trips["pickup"] - lag < MONTH_START)
    kinds[too_early] = TRIP
    moved &= ~too_early
    trips["pickup"][moved] -= lag[moved]


def _change(
    trips: Columns, kinds: Kinds, nearness: NDArray[np.float64], delay: NDArray[np.uint16], variety: NDArray[np.uint16]
) -> None:
    """Corrections and deletes of earlier trips, known a minute to three days after the trip."""
    rows = _copy_earlier(trips, kinds, kinds <= OUT_OF_ORDER, (CORRECTION, DELETE), nearness)
    trips["updated_at"][rows] += 60 + 4 * delay[rows].astype(np.int64)
    trips["op"][rows] = np.where(kinds[rows] == DELETE, DELETED, UPDATED)
    corrected = rows[kinds[rows] == CORRECTION]
    _correct(trips, corrected, variety[corrected].astype(np.int64))


def _correct(trips: Columns, rows: NDArray[np.int64], variety: NDArray[np.int64]) -> None:
    """Every correction changes the fare; 1 in 8 also moves the trip to another day, 1 in 8 to another zone."""
    change = (50 + (variety >> 3) % 40 * 50) * np.where(trips["fare_amount"][rows] < 0, -1, 1)
    for name in ("fare_amount", "total_amount"):
        trips[name][rows] += change.astype(np.int32)
    moved = rows[(variety % 8 == 0) & (trips["outside"][rows] == 0)]
    days = 1 + trips["updated_at"][moved] % 3
    trips["pickup"][moved] += 86_400 * days * np.where(trips["pickup"][moved] < _MIDDLE, 1, -1)
    elsewhere = rows[variety % 8 == 1]
    trips["PULocationID"][elsewhere] = trips["PULocationID"][elsewhere] % 263 + 1


def _repeat(trips: Columns, kinds: Kinds, nearness: NDArray[np.float64]) -> None:
    """Exact copies of any earlier readable event, corrections and deletes included."""
    _copy_earlier(trips, kinds, kinds <= DELETE, (DUPLICATE,), nearness)


def _copy_earlier(
    trips: Columns,
    kinds: Kinds,
    eligible: NDArray[np.bool_],
    into: tuple[int, ...],
    nearness: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Overwrite the rows of these kinds with earlier eligible rows; those that have none become plain trips."""
    sources, rows = np.flatnonzero(eligible), np.flatnonzero(np.isin(kinds, into))
    before = np.searchsorted(sources, rows)
    kinds[rows[before == 0]] = TRIP
    rows, before = rows[before > 0], before[before > 0]
    back = (nearness[rows] * before).astype(np.int64)
    chosen = sources[before - 1 - back]
    for name, column in trips.items():
        if name != "due":
            column[rows] = column[chosen]
    return rows
