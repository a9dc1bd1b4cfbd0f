"""What the taxi tables must hold, recomputed in batch by DuckDB from the events alone: no code of ours in between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

_MONEY = {
    "fare_amount": "fare_amount", "extra": "extra_amount", "mta_tax": "mta_tax", "tip_amount": "tip_amount",
    "tolls_amount": "tolls_amount", "improvement_surcharge": "improvement_surcharge", "total_amount": "total_amount",
    "congestion_surcharge": "congestion_surcharge", "Airport_fee": "airport_fee",
}  # fmt: skip
_WHOLE = {
    "VendorID": "vendor_id", "passenger_count": "passenger_count", "RatecodeID": "rate_code_id",
    "PULocationID": "pickup_location_id", "DOLocationID": "dropoff_location_id", "payment_type": "payment_type_id",
}  # fmt: skip
_TRIPS = (
    "trip_id, vendor_id, pickup_datetime, dropoff_datetime, passenger_count, trip_distance_miles, rate_code_id, "
    "store_and_fwd_flag, pickup_location_id, dropoff_location_id, payment_type_id, " + ", ".join(_MONEY.values())
)


def _money(name: str) -> str:
    """Half up on the number as it is written, exact: DuckDB rounds decimals away from zero at the half."""
    return f"round(TRY_CAST(event->>'{name}' AS DECIMAL(38, 15)), 2)"


_SHOWN = ", ".join(
    f"coalesce({text}, 'null')"
    for text in (
        "event->>'VendorID'", "event->>'tpep_pickup_datetime'", "event->>'tpep_dropoff_datetime'",
        "event->>'PULocationID'", "event->>'DOLocationID'",
        "CAST(CAST(event->>'fare_amount' AS DOUBLE) AS VARCHAR)",
        "CAST(CAST(event->>'total_amount' AS DOUBLE) AS VARCHAR)",
    )
)  # fmt: skip
# A delete needs its key and no more: whatever it says of the trip, the trip goes.
_SQL = f"""
CREATE VIEW parsed AS
SELECT place, CASE WHEN json_valid(value) AND json_type(value) = 'OBJECT' THEN CAST(value AS JSON) END AS event
FROM events;

CREATE VIEW typed AS
SELECT place, event IS NOT NULL
    AND (event->>'tpep_pickup_datetime' IS NULL OR TRY_CAST(event->>'tpep_pickup_datetime' AS TIMESTAMP) IS NOT NULL)
    AND (event->>'tpep_dropoff_datetime' IS NULL OR TRY_CAST(event->>'tpep_dropoff_datetime' AS TIMESTAMP) IS NOT NULL)
    AND {" AND ".join(f"coalesce(abs({_money(name)}) < 100000000, true)" for name in _MONEY)} AS readable,
    coalesce(event->>'trip_uid', md5(concat_ws('-', {_SHOWN}))) AS trip_id,
    TRY_CAST(event->>'tpep_pickup_datetime' AS TIMESTAMP) AS pickup_datetime,
    TRY_CAST(event->>'tpep_dropoff_datetime' AS TIMESTAMP) AS dropoff_datetime,
    CAST(event->>'trip_distance' AS DOUBLE) AS trip_distance_miles,
    event->>'store_and_fwd_flag' AS store_and_fwd_flag,
    {", ".join(f"CAST(event->>'{name}' AS INTEGER) AS {column}" for name, column in _WHOLE.items())},
    {", ".join(f"CAST({_money(name)} AS DECIMAL(18, 2)) AS {column}" for name, column in _MONEY.items())},
    coalesce(event->>'op', 'c') AS op,
    TRY_CAST(event->>'updated_at' AS TIMESTAMP) AS updated_at
FROM parsed;

CREATE VIEW judged AS
SELECT *, CASE WHEN coalesce(readable AND (op = 'd' OR (pickup_datetime IS NOT NULL AND dropoff_datetime IS NOT NULL
    AND trip_distance_miles >= 0 AND fare_amount >= 0
    AND pickup_datetime >= TIMESTAMP '2024-01-01' AND pickup_datetime < TIMESTAMP '2024-02-01')), false)
    THEN 'good' ELSE 'dead' END AS verdict
FROM typed;

CREATE TABLE trips AS
SELECT {_TRIPS} FROM (
    SELECT *, row_number() OVER (PARTITION BY trip_id ORDER BY {{order}}) AS rank FROM judged WHERE verdict = 'good'
) WHERE rank = 1 AND op <> 'd';
{"".join(f"ALTER TABLE trips ALTER {name} TYPE DECIMAL(10, 2);" for name in _MONEY.values())}

CREATE VIEW measured AS
SELECT *, CAST(date_diff('minute', pickup_datetime, dropoff_datetime) AS INTEGER) AS trip_duration_minutes FROM trips;

CREATE VIEW timed AS
SELECT *, CASE WHEN trip_duration_minutes > 0 THEN CAST(round(CAST(CAST(
        trip_distance_miles / (trip_duration_minutes / CAST(60 AS DOUBLE)) AS VARCHAR) AS DECIMAL(38, 18)), 2)
    AS DOUBLE) END AS avg_speed_mph
FROM measured;

CREATE VIEW trip_metrics AS
SELECT *,
    CASE WHEN trip_distance_miles > 0 THEN CAST(fare_amount AS DOUBLE) / trip_distance_miles END AS cost_per_mile,
    {{tip_percentage}} AS tip_percentage,
    CAST(pickup_datetime AS DATE) AS pickup_date,
    CAST(hour(pickup_datetime) AS INTEGER) AS pickup_hour,
    dayname(pickup_datetime) AS pickup_day_of_week,
    dayofweek(pickup_datetime) IN (0, 6) AS is_weekend
FROM timed
WHERE trip_duration_minutes BETWEEN 1 AND 720 AND (avg_speed_mph IS NULL OR avg_speed_mph < 100);
"""
# Spark divides decimals to 13 places here, half up; DuckDB would divide as doubles. So in whole numbers, exactly.
_TIP = """CASE WHEN fare_amount > 0 THEN CAST(CAST(
    sign(tip_amount) * ((2 * CAST(abs(tip_amount) * 100 AS HUGEINT) * 1000000000000000
        + CAST(fare_amount * 100 AS HUGEINT)) // (2 * CAST(fare_amount * 100 AS HUGEINT)))
    AS DECIMAL(38, 0)) * 0.0000000000001::DECIMAL(14, 13) AS DECIMAL(27, 13)) END"""


@dataclass(frozen=True)
class TaxiOracle:
    """The tables over `values`: the events as JSON, in the order of the broker.

    `connection` holds `trips` and `trip_metrics` for further queries; `judged` has each event's verdict by its place.
    """

    values: tuple[bytes | None, ...]

    @classmethod
    def of(cls, values: Iterable[bytes | None]) -> TaxiOracle:
        return cls(tuple(values))

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        found = duckdb.connect()
        found.register("given", pa.table({"place": range(len(self.values)), "value": [_text(v) for v in self.values]}))
        found.execute("CREATE TABLE events AS SELECT * FROM given")
        # The last change by its own clock wins; without one, the first event of a trip does.
        order = "updated_at DESC NULLS LAST, CASE WHEN updated_at IS NULL THEN place ELSE -place END"
        found.execute(_SQL.format(order=order, tip_percentage=_TIP))
        return found

    def table(self, name: str, columns: str = "*") -> pa.Table:
        return self.connection.execute(f"SELECT {columns} FROM {name} ORDER BY trip_id").to_arrow_table()

    def dead(self) -> set[int]:
        """The places of the events that must be dead letters."""
        return {row[0] for row in self._rows("SELECT place FROM judged WHERE verdict = 'dead'")}

    def count(self, condition: str) -> int:
        return int(self._rows(f"SELECT count(*) FROM judged WHERE {condition}")[0][0])

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def rows_by_id(table: pa.Table) -> dict[str, dict[str, Any]]:
    """Rows by trip id, for a readable comparison: a pair of differing rows, not two whole tables."""
    return {row["trip_id"]: row for row in table.to_pylist()}
