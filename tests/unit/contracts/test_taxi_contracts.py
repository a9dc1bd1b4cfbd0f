"""The example's own contracts say what TAXI promises."""

from pathlib import Path

import pytest

from lodestream.contracts import load_contract

CONTRACTS = Path(__file__).parents[3] / "examples" / "nyc_taxi" / "contracts"
MONEY = [
    "fare_amount",
    "extra_amount",
    "mta_tax",
    "tip_amount",
    "tolls_amount",
    "improvement_surcharge",
    "total_amount",
    "congestion_surcharge",
    "airport_fee",
]


def test_the_trip_contract_has_the_columns_of_silver_trips() -> None:
    trips = load_contract(CONTRACTS / "trip.yaml")
    types = {field.name: field.type for field in trips.fields}
    assert {types[name] for name in MONEY} == {"decimal(10,2)"}
    assert {trips[name].reading.rounding for name in MONEY} == {"half_up"}
    whole = "vendor_id rate_code_id pickup_location_id dropoff_location_id payment_type_id passenger_count"
    assert {types[name] for name in whole.split()} == {"int"}
    assert types["pickup_datetime"] == types["dropoff_datetime"] == "timestamp_ntz"
    assert len(types) == 20
    assert trips.keys == ("trip_id",)
    assert trips.event_time == "pickup_datetime"
    assert (trips.owner, trips.freshness, trips.title) == ("mobility", 5.0, "trips 1.0.0")


def test_the_trip_contract_refuses_what_taxi_drops() -> None:
    reasons = [violation.reason for violation in load_contract(CONTRACTS / "trip.yaml").violations()]
    assert reasons == [
        "trip_id is null",
        "pickup_datetime is null",
        "dropoff_datetime is null",
        "rule: trip_distance_miles is not negative",
        "rule: fare_amount is not negative",
        "rule: pickup is in January 2024",
    ]


def test_every_field_of_the_event_is_optional_and_every_source_is_a_field_of_it() -> None:
    event = load_contract(CONTRACTS / "trip_event.yaml")
    assert event.violations() == ()
    names = {field.name for field in event.fields}
    computed = {"trip_id"}
    trips = load_contract(CONTRACTS / "trip.yaml")
    assert {field.source_name for field in trips.fields} - names == computed


@pytest.mark.parametrize("name", ["trip.yaml", "trip_event.yaml"])
def test_ddl_quotes_every_name(name: str) -> None:
    contract = load_contract(CONTRACTS / name)
    assert contract.ddl().split(", ")[0].startswith("`")
    assert contract.ddl().count("`") == 2 * len(contract.fields)
