"""The month looks like January 2024."""

from __future__ import annotations

import csv
import json
from collections import Counter
from datetime import datetime

import pytest
from generator import events, expected
from generator.city import ZONES_FILE
from generator.month import MONTH_TRIPS, outside_places
from generator.trips import NULL_TOGETHER

FIELDS = [
    "VendorID", "tpep_pickup_datetime", "tpep_dropoff_datetime", "passenger_count", "trip_distance", "RatecodeID",
    "store_and_fwd_flag", "PULocationID", "DOLocationID", "payment_type", "fare_amount", "extra", "mta_tax",
    "tip_amount", "tolls_amount", "improvement_surcharge", "total_amount", "congestion_surcharge", "Airport_fee",
]  # fmt: skip
N = 30_000


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return [json.loads(value) for batch in events(N, seed=11) for value in batch.values.to_pylist()]


def share(rows: list[dict], holds) -> float:
    return sum(map(holds, rows)) / len(rows)


def pickup(row: dict) -> datetime:
    return datetime.fromisoformat(row["tpep_pickup_datetime"])


def test_every_event_has_the_fields_of_the_tlc_file_in_order(rows):
    assert all(list(row) == FIELDS for row in rows)


def test_times_are_iso_without_a_zone_and_money_has_two_decimals():
    raw = next(events(1)).values[0].as_py().decode()
    assert datetime.fromisoformat(json.loads(raw)["tpep_pickup_datetime"]).tzinfo is None
    assert json.loads(raw, parse_float=str)["total_amount"].split(".")[1].__len__() == 2


def test_about_4_7_percent_lack_five_fields_together(rows):
    assert share(rows, lambda r: r["passenger_count"] is None) == pytest.approx(0.047, abs=0.004)
    for row in rows:
        assert len({row[name] is None for name in NULL_TOGETHER}) == 1
        assert (row["payment_type"] == 0) == (row["passenger_count"] is None)


def test_about_1_3_percent_are_refunds_with_every_amount_negative_or_zero(rows):
    refunds = [row for row in rows if row["fare_amount"] < 0]
    assert len(refunds) / N == pytest.approx(0.013, abs=0.002)
    assert all(row[name] <= 0 for row in refunds for name in FIELDS[10:] if row[name] is not None)


def test_totals_add_up_to_the_cent(rows):
    for row in rows:
        parts = [round(100 * (row[name] or 0)) for name in FIELDS[10:] if name != "total_amount"]
        assert sum(parts) == round(100 * row["total_amount"])


def test_manhattan_and_the_airports_are_heavy(rows):
    with ZONES_FILE.open(newline="") as file:
        borough = {int(zone["location_id"]): zone["borough"] for zone in csv.DictReader(file)}
    assert share(rows, lambda r: borough[r["PULocationID"]] == "Manhattan") == pytest.approx(0.88, abs=0.03)
    top = [zone for zone, _ in Counter(row["PULocationID"] for row in rows).most_common(15)]
    assert {132, 138, 161, 237} <= set(top)


def test_evenings_are_busier_than_nights_and_weekend_nights_busier_than_weekday_nights(rows):
    hours = Counter((pickup(row).weekday() >= 5, pickup(row).hour) for row in rows)
    assert hours[False, 18] > 10 * hours[False, 4]
    assert hours[True, 1] / 8 > 3 * hours[False, 1] / 23


def test_the_whole_month_is_covered_in_pickup_order(rows):
    january = [pickup(row) for row in rows if pickup(row).strftime("%Y-%m") == "2024-01"]
    assert len({moment.day for moment in january}) == 31
    assert january == sorted(january)


def test_some_distances_are_zero_some_speeds_absurd_some_trips_day_long(rows):
    def hours(row: dict) -> float:
        return (datetime.fromisoformat(row["tpep_dropoff_datetime"]) - pickup(row)).total_seconds() / 3600

    assert share(rows, lambda r: r["trip_distance"] == 0) == pytest.approx(0.01, abs=0.003)
    assert 0 < share(rows, lambda r: hours(r) > 0 and r["trip_distance"] / hours(r) > 100) < 0.002
    assert 0 < share(rows, lambda r: hours(r) > 12) < 0.003


@pytest.mark.parametrize(("lap", "count"), [(999, 0), (1_000, 3), (100_000, 3), (MONTH_TRIPS, 18), (10_000_000, 61)])
def test_wrong_clocks_are_18_in_a_month_and_three_from_a_thousand_on(lap, count):
    places = outside_places(lap)
    assert len(set(places.tolist())) == count
    assert all(0 <= place < lap for place in places)


def test_wrong_clocks_are_in_the_stream(rows):
    outside = [row for row in rows if pickup(row).strftime("%Y-%m") != "2024-01"]
    assert len(outside) == expected(N, seed=11).outside == 3


def test_the_reference_data_has_all_265_zones():
    with ZONES_FILE.open(newline="") as file:
        zones = list(csv.DictReader(file))
    assert [int(zone["location_id"]) for zone in zones] == list(range(1, 266))
    boroughs = Counter(zone["borough"] for zone in zones)
    assert boroughs["Manhattan"] == boroughs["Queens"] == 69
    assert (boroughs["Brooklyn"], boroughs["Bronx"], boroughs["Staten Island"]) == (61, 43, 20)
    assert zones[131]["zone_name"] == "JFK Airport"
    assert zones[264]["zone_name"] == "Outside of NYC"


def test_every_code_in_the_events_is_in_the_reference_data(rows):
    for name, file, key in [
        ("payment_type", "payment_types.csv", "payment_type_id"),
        ("RatecodeID", "rate_codes.csv", "rate_code_id"),
        ("DOLocationID", "zones.csv", "location_id"),
    ]:
        with (ZONES_FILE.parent / file).open(newline="") as lines:
            known = {int(row[key]) for row in csv.DictReader(lines)}
        assert {row[name] for row in rows if row[name] is not None} <= known
