"""Replays a real TLC yellow-taxi parquet file as the same events.

The files differ by year: Airport_fee or airport_fee, whole numbers stored as doubles, 32 or 64 bits, a missing column.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .counts import Counts
from .draws import BLOCK
from .encode import join_records, json_any
from .events import Batch
from .fares import MONEY
from .month import in_month

_WHOLE = ("VendorID", "passenger_count", "RatecodeID", "PULocationID", "DOLocationID", "payment_type")
_TIMES = ("tpep_pickup_datetime", "tpep_dropoff_datetime")
FIELDS = (
    "VendorID",
    *_TIMES,
    "passenger_count",
    "trip_distance",
    "RatecodeID",
    "store_and_fwd_flag",
    "PULocationID",
    "DOLocationID",
    "payment_type",
    *MONEY,
)
_REQUIRED = (*_TIMES, "trip_distance", "fare_amount")


class NotTripData(Exception):
    """The file is no TLC yellow-taxi file."""


def replay(path: Path, *, limit: int | None = None, chunk: int = BLOCK) -> Iterator[Batch]:
    """The rows of the file in its own order, at most `limit`, `chunk` at a time."""
    file = pq.ParquetFile(path)
    columns = _columns(file.schema_arrow, path)
    start = 0
    for rows in file.iter_batches(batch_size=chunk, columns=list(columns.values())):
        rows = rows if limit is None else rows.slice(0, limit - start)
        if not len(rows):
            return
        yield _batch(_conform(rows, columns), start)
        start += len(rows)


def _columns(schema: pa.Schema, path: Path) -> dict[str, str]:
    """Our field name to the file's, matched without regard to case."""
    by_name = {name.lower(): name for name in schema.names}
    missing = [name for name in _REQUIRED if name.lower() not in by_name]
    if missing:
        raise NotTripData(
            f"{path} is no yellow-taxi file: it lacks {', '.join(missing)}; it has {', '.join(schema.names)}"
        )
    return {name: by_name[name.lower()] for name in FIELDS if name.lower() in by_name}


def _conform(rows: pa.RecordBatch, columns: dict[str, str]) -> dict[str, pa.Array]:
    """Every field in our order and type; a column the file lacks is null."""
    return {
        name: _typed(name, rows.column(columns[name]) if name in columns else pa.nulls(len(rows))) for name in FIELDS
    }


def _typed(name: str, values: pa.Array) -> pa.Array:
    if name in _TIMES:
        return values.cast(pa.timestamp("s"), safe=False)
    if name == "store_and_fwd_flag":
        return values.cast(pa.string())
    if name in _WHOLE:
        return values.cast(pa.int64())
    return values.cast(pa.float64())


def _batch(columns: dict[str, pa.Array], start: int) -> Batch:
    values = join_records({name: json_any(column) for name, column in columns.items()})
    pickup = columns["tpep_pickup_datetime"].cast(pa.int64()).fill_null(0).to_numpy()
    # Files are not in strict pickup order; the wire goes forward only.
    due = np.maximum.accumulate(pickup)
    return Batch(start, pa.nulls(len(values), pa.binary()), values, due, _count(columns))


def _count(columns: dict[str, pa.Array]) -> Counts:
    pickup = columns["tpep_pickup_datetime"].cast(pa.int64()).fill_null(0).to_numpy()
    negative = pc.less(columns["fare_amount"], 0).fill_null(False).to_numpy(zero_copy_only=False)
    outside = ~in_month(pickup)
    return Counts(
        events=len(pickup),
        trips=len(pickup),
        negative=int(negative.sum()),
        outside=int(outside.sum()),
        nulls=columns["passenger_count"].null_count,
        zero_distance=pc.sum(pc.equal(columns["trip_distance"], 0)).as_py() or 0,
        rejected=int((negative | outside).sum()),
    )
