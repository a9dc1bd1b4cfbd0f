"""Where trips go and how far: the busy zones, the airports, and distances per kind of route."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from .draws import choices

ZONES_FILE = Path(__file__).resolve().parent.parent / "reference" / "zones.csv"
JFK, LAGUARDIA, NEWARK = 132, 138, 1
MANHATTAN, AT_JFK, AT_LGA, AT_EWR, OUTER, ELSEWHERE = range(6)
QUANTILES = 4_096

# Pickups per 10,000 trips; every other zone gets a little by borough.
_BUSY_PICKUPS = {
    132: 490, 161: 484, 237: 481, 236: 460, 162: 360, 230: 359, 186: 352, 142: 351, 138: 302, 239: 298,
    163: 294, 170: 291, 234: 268, 48: 264, 68: 262, 141: 258, 79: 254, 249: 226, 164: 230, 107: 216,
    140: 205, 262: 178, 263: 222, 238: 200, 229: 176, 100: 190, 43: 170, 113: 146, 114: 150, 90: 172,
    231: 152, 246: 166, 143: 142, 211: 110, 233: 140, 137: 148, 148: 126, 50: 138, 125: 62, 75: 118,
    74: 62, 151: 96, 24: 46, 166: 64, 41: 50, 13: 64, 87: 66, 88: 34, 45: 40, 144: 86, 158: 76,
    209: 22, 261: 46, 224: 32, 70: 34, 33: 14, 7: 10, 145: 12, 181: 8, 265: 12, 264: 40,
}  # fmt: skip
_QUIET_PICKUPS = {"Manhattan": 6.0, "Queens": 1.6, "Brooklyn": 2.0, "Bronx": 0.7, "Staten Island": 0.04, "EWR": 1.0}
# Where a trip ends, by where it began: per cent to each kind of place.
_FLOWS = {
    MANHATTAN: (91.0, 0.9, 1.2, 0.3, 5.9, 0.7),
    AT_JFK: (66.0, 1.4, 1.3, 0.1, 28.0, 3.2),
    AT_LGA: (76.0, 0.9, 0.6, 0.1, 20.6, 1.8),
    AT_EWR: (30.0, 1.0, 1.0, 60.0, 2.0, 6.0),
    OUTER: (38.0, 2.0, 2.0, 0.2, 56.0, 1.8),
    ELSEWHERE: (44.0, 1.0, 1.0, 0.2, 8.0, 45.8),
}
# Median miles from row to column, in the order Manhattan, JFK, LaGuardia, Newark, outer boroughs, elsewhere.
_MEDIAN_MILES = (
    (1.65, 17.6, 9.8, 17.0, 6.0, 9.0),
    (17.4, 1.4, 11.0, 33.0, 13.5, 21.0),
    (9.7, 11.2, 0.9, 26.0, 8.4, 15.0),
    (17.0, 33.0, 26.0, 0.6, 21.0, 14.0),
    (5.8, 11.0, 5.5, 21.0, 2.9, 9.0),
    (8.0, 18.0, 12.0, 14.0, 8.0, 2.2),
)
_SPREAD = (
    (0.62, 0.12, 0.17, 0.12, 0.48, 0.70),
    (0.14, 0.80, 0.16, 0.10, 0.42, 0.50),
    (0.20, 0.15, 0.80, 0.10, 0.46, 0.50),
    (0.14, 0.10, 0.10, 0.90, 0.30, 0.60),
    (0.55, 0.40, 0.50, 0.20, 0.75, 0.60),
    (0.60, 0.40, 0.50, 0.50, 0.60, 1.10),
)


def read_zones() -> dict[int, str]:
    """Borough by location id."""
    with ZONES_FILE.open(newline="", encoding="utf-8") as file:
        return {int(row["location_id"]): row["borough"] for row in csv.DictReader(file)}


def _place_of(zone: int, borough: str) -> int:
    airports = {JFK: AT_JFK, LAGUARDIA: AT_LGA, NEWARK: AT_EWR}
    boroughs = {"Manhattan": MANHATTAN, "Queens": OUTER, "Brooklyn": OUTER, "Bronx": OUTER}
    return airports.get(zone, boroughs.get(borough, ELSEWHERE))


def normal_quantiles(count: int) -> NDArray[np.float64]:
    normal = NormalDist()
    return np.array([normal.inv_cdf((step + 0.5) / count) for step in range(count)])


_ZONES = read_zones()
PLACE = np.zeros(max(_ZONES) + 1, dtype=np.int8)
for _zone, _borough in _ZONES.items():
    PLACE[_zone] = _place_of(_zone, _borough)

_WEIGHTS = {zone: _BUSY_PICKUPS.get(zone, _QUIET_PICKUPS.get(borough, 1.0)) for zone, borough in _ZONES.items()}
PICKUPS = choices(_WEIGHTS)


def _dropoffs() -> NDArray[np.signedinteger]:
    tables = []
    for shares in _FLOWS.values():
        weights: dict[int, float] = {}
        for place, share in enumerate(shares):
            # An exponent below 1 flattens the list: trips end in more places than they begin.
            members = {zone: weight**0.7 for zone, weight in _WEIGHTS.items() if PLACE[zone] == place}
            weights |= {zone: share * weight / sum(members.values()) for zone, weight in members.items()}
        tables.append(choices(weights))
    return np.stack(tables)


def _distances() -> NDArray[np.int32]:
    normal = normal_quantiles(QUANTILES)
    medians, spreads = np.array(_MEDIAN_MILES)[..., None], np.array(_SPREAD)[..., None]
    hundredths = np.rint(100 * medians * np.exp(spreads * normal))
    distances: NDArray[np.int32] = np.maximum(hundredths, 1).astype(np.int32)
    return distances


DROPOFFS = _dropoffs()
DISTANCES = _distances()
"""Hundredths of a mile by [pickup place, dropoff place, quantile]."""
