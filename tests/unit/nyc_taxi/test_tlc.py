"""A real TLC file is replayed as the same events, whichever year's schema it has."""

from __future__ import annotations

import json
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from generator import NotTripData, replay
from generator.tlc import FIELDS

ROWS = 5
MOMENTS = [datetime(2024, 1, 1, 0, 57, 55), datetime(2024, 1, 1, 0, 3), datetime(2002, 12, 31, 22, 59, 39)] + [
    datetime(2024, 1, 31, 23, 59, 59)
] * 2


INT64 = pa.int64()


def write_file(path, *, whole=INT64, airport="Airport_fee", unit="us", drop=()):
    columns = {
        "VendorID": pa.array([2, 1, 1, 2, 2], pa.int32()),
        "tpep_pickup_datetime": pa.array(MOMENTS, pa.timestamp(unit)),
        "tpep_dropoff_datetime": pa.array(MOMENTS[::-1], pa.timestamp(unit)),
        "passenger_count": pa.array([1, None, 0, 2, 3], whole),
        "trip_distance": pa.array([1.72, 0.0, 97.55, 3.0, float("nan")]),
        "RatecodeID": pa.array([1, None, 99, 5, 1], whole),
        "store_and_fwd_flag": pa.array(["N", None, "Y", "N", 'a"\\b'], pa.large_string()),
        "PULocationID": pa.array([186, 140, 265, 1, 79], pa.int32()),
        "DOLocationID": pa.array([79, 236, 264, 1, 211], pa.int32()),
        "payment_type": pa.array([2, 0, 4, 1, 1], pa.int64()),
        "fare_amount": pa.array([17.7, -10.0, 401095.62, 0.01, 12.1]),
        "extra": pa.array([1.0, 3.5, 0.0, 0.0, 6.0]),
        "mta_tax": pa.array([0.5] * ROWS),
        "tip_amount": pa.array([0.0, 3.75, 0.0, 1e-5, 2.0]),
        "tolls_amount": pa.array([0.0] * ROWS),
        "improvement_surcharge": pa.array([1.0] * ROWS),
        "total_amount": pa.array([22.7, 18.75, 1.0, 2.0, None]),
        "congestion_surcharge": pa.array([2.5, None, 2.5, 2.5, 2.5]),
        airport: pa.array([0.0, None, 1.75, 0.0, 0.0]),
    }
    pq.write_table(pa.table({name: column for name, column in columns.items() if name not in drop}), path)
    return path


def read(path, **options) -> list[dict]:
    return [json.loads(value) for batch in replay(path, **options) for value in batch.values.to_pylist()]


@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"whole": pa.float64(), "airport": "airport_fee", "unit": "us"},
        {"whole": pa.int32(), "unit": "ns"},
    ],
)
def test_every_schema_variant_gives_the_same_events(tmp_path, variant):
    rows = read(write_file(tmp_path / "trips.parquet", **variant))
    assert all(tuple(row) == FIELDS for row in rows)
    assert [row["tpep_pickup_datetime"] for row in rows] == [moment.isoformat() for moment in MOMENTS]
    assert [row["passenger_count"] for row in rows] == [1, None, 0, 2, 3]
    assert all(row["passenger_count"] is None or isinstance(row["passenger_count"], int) for row in rows)
    assert [row["fare_amount"] for row in rows] == [17.7, -10.0, 401095.62, 0.01, 12.1]
    assert [row["tip_amount"] for row in rows] == [0.0, 3.75, 0.0, 1e-5, 2.0]
    assert [row["Airport_fee"] for row in rows] == [0.0, None, 1.75, 0.0, 0.0]
    assert rows[4]["store_and_fwd_flag"] == 'a"\\b'
    assert rows[4]["trip_distance"] is None
    assert rows[4]["total_amount"] is None


def test_a_column_that_older_files_lack_is_null(tmp_path):
    rows = read(write_file(tmp_path / "trips.parquet", drop=("Airport_fee", "congestion_surcharge")))
    assert [row["Airport_fee"] for row in rows] == [None] * ROWS


def test_chunks_and_a_limit_cut_the_same_rows(tmp_path):
    path = write_file(tmp_path / "trips.parquet")
    assert read(path, chunk=2) == read(path)
    assert read(path, chunk=2, limit=3) == read(path)[:3]


def test_what_silver_refuses_is_counted(tmp_path):
    (batch,) = replay(write_file(tmp_path / "trips.parquet"))
    assert (batch.counts.events, batch.counts.negative, batch.counts.outside, batch.counts.nulls) == (5, 1, 1, 1)
    assert batch.counts.rejected == 2


def test_another_kind_of_file_is_refused_by_name(tmp_path):
    pq.write_table(pa.table({"lpep_pickup_datetime": [1]}), tmp_path / "green.parquet")
    with pytest.raises(NotTripData, match=r"green.parquet .* lacks tpep_pickup_datetime"):
        next(replay(tmp_path / "green.parquet"))
