"""The Gold SQL of the taxi example: the strategy of each table, and equality with its query after corrections."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lodestream.pipeline.gold import InputInfo

FOLDER = Path(__file__).parents[3] / "examples" / "nyc_taxi" / "gold"
MONEY = (
    "fare_amount",
    "extra_amount",
    "mta_tax",
    "tip_amount",
    "tolls_amount",
    "improvement_surcharge",
    "total_amount",
    "congestion_surcharge",
    "airport_fee",
)
METRICS = InputInfo(
    "silver.trip_metrics",
    {
        "trip_id": "string",
        "vendor_id": "int",
        "rate_code_id": "int",
        "payment_type_id": "int",
        "pickup_location_id": "int",
        "dropoff_location_id": "int",
        "pickup_datetime": "timestamp_ntz",
        "dropoff_datetime": "timestamp_ntz",
        "passenger_count": "int",
        "trip_distance_miles": "double",
        "store_and_fwd_flag": "string",
        **dict.fromkeys(MONEY, "decimal(10,2)"),
        "trip_duration_minutes": "int",
        "avg_speed_mph": "double",
        "cost_per_mile": "double",
        "tip_percentage": "decimal(27,13)",
        "pickup_date": "date",
        "pickup_hour": "int",
        "pickup_day_of_week": "string",
        "is_weekend": "boolean",
    },
    keys=("trip_id",),
    partition_by=("pickup_date",),
)
ZONE_COLUMNS = {"location_id": "int", "borough": "string", "zone_name": "string", "service_zone": "string"}
ZONES = InputInfo("silver.zones", ZONE_COLUMNS, keys=("location_id",), lookup=True)
PAYMENTS = InputInfo("silver.payment_types", {"payment_type_id": "int", "payment_type_name": "string"}, lookup=True)
STRATEGIES = {
    "daily_summary": "delta",
    "hourly_patterns": "delta",
    "fct_trips": "delta",
    "dim_dates": "delta",
    "dim_locations": "delta",
    "dim_payment_types": "delta",
    "mart_hourly_demand": "affected",
    "mart_location_performance": "affected",
    "mart_daily_revenue": "full",
    "anomaly_daily_trips": "full",
}


def silver(seed: int) -> dict[str, list[tuple[Any, ...]]]:
    chance = random.Random(seed)
    trips = [_trip(random.Random(key if chance.random() < 0.7 else key * 1000 + seed), key) for key in range(120)]
    zones = [(key, f"b{key % 3}", f"zone {key}" + (" new" if key == seed else ""), "s") for key in range(1, 6)]
    kinds = [(1, "Credit card"), (2, "Cash")]
    kept = [trip for trip in trips if chance.random() < 0.8]
    return {"silver.trip_metrics": kept, "silver.zones": zones, "silver.payment_types": kinds}


def _trip(chance: random.Random, key: int) -> tuple[Any, ...]:
    start = datetime(2024, 1, 1) + timedelta(minutes=chance.randrange(6 * 24 * 60))
    minutes = chance.randrange(1, 90)
    miles = chance.choice([None, chance.randrange(0, 3000) / 100])
    money = {name: Decimal(chance.randrange(0, 9000)).scaleb(-2) for name in MONEY}
    fare, tip = money["fare_amount"], money["tip_amount"]
    speed = None if miles is None else round(miles / (minutes / 60), 2)
    per_mile = float(fare) / miles if miles else None
    share = (100 * tip / fare).quantize(Decimal("1e-13")) if fare else None
    places = [chance.choice([None, 1, 2, 3, 4, 5]) for _ in range(2)]
    day = [start.date(), start.hour, start.strftime("%A"), start.weekday() > 4]
    ends = [start, start + timedelta(minutes=minutes), chance.choice([None, 1, 2]), miles, None]
    return (
        f"t{key}",
        1,
        1,
        chance.choice([1, 2, 3, None]),
        *places,
        *ends,
        *money.values(),
        minutes,
        speed,
        per_mile,
        share,
        *day,
    )


def _sql(name: str) -> str:
    return (FOLDER / f"{name}.sql").read_text()


def _described(keep: Any, name: str, infos: Mapping[str, InputInfo], keys: tuple[str, ...]) -> tuple[InputInfo, Any]:
    """An upstream Gold table as an input: its columns as Spark types them, and the keeper that gives its rows."""
    upstream = keep(_sql(name), infos)
    schema = {field.name: field.dataType.simpleString() for field in upstream.gold().schema}
    return InputInfo(f"gold.{name}", schema, keys=keys), upstream


def test_every_file_has_a_stated_strategy() -> None:
    assert {file.stem for file in FOLDER.glob("*.sql")} == set(STRATEGIES)


@pytest.mark.parametrize("name", STRATEGIES)
def test_taxi_gold_equals_its_query_after_corrections(keep: Any, name: str) -> None:
    infos = {info.name: info for info in (METRICS, ZONES, PAYMENTS)}
    upstream = {}
    for table, keys in {"daily_summary": ("pickup_date",), "hourly_patterns": (), "dim_dates": ("date_key",)}.items():
        if f"gold.{table}" in _sql(name):
            infos[f"gold.{table}"], upstream[table] = _described(keep, table, infos, keys)
    kept = keep(_sql(name), infos)
    assert kept.plan.strategy == STRATEGIES[name], kept.plan.reason
    for seed in (1, 2):
        tables = silver(seed)
        for table, keeper in upstream.items():
            keeper.become(tables)
            tables[f"gold.{table}"] = [tuple(row) for row in keeper.gold().collect()]
        kept.become(tables)
    kept.check(_sql(name))
