"""One block of slots: its columns, and its Kafka keys and values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .dirt import MALFORMED, Dirt, Kinds, soil
from .draws import BLOCK, draw_lanes
from .encode import join_records, json_cents, json_choices, json_integers, json_times
from .fares import Columns
from .malformed import spoil
from .trips import make_trips

_FLAGS = (b'"N"', b'"Y"', b"null")
_OPS = (b'"c"', b'"u"', b'"d"')
_EMPTY = pa.scalar(b"", pa.binary())
_QUOTE = pa.scalar(b'"', pa.binary())


@dataclass(frozen=True, slots=True)
class Block:
    """The columns of consecutive slots of one block, before encoding."""

    trips: Columns
    kinds: Kinds
    lanes: NDArray[np.uint16]


def make_block(start: int, rows: int, seed: int, dirt: Dirt, lap: int) -> Block:
    """The first `rows` slots of the block that begins at slot `start`."""
    lanes = draw_lanes(seed, start // BLOCK, rows)
    trips = make_trips(np.arange(start, start + rows, dtype=np.int64), lap, lanes)
    return Block(trips, soil(trips, dirt, lanes), lanes)


def encode_block(block: Block, seed: int, keyed: bool) -> tuple[pa.Array, pa.Array]:
    """Keys and values of a block, ready for Kafka."""
    fields = _trip_fields(block.trips)
    keys = pa.nulls(len(block.kinds), pa.binary())
    if keyed:
        keys = trip_uids(block.trips, seed)
        fields |= _change_fields(block.trips, keys)
    values = join_records(fields)
    return keys, spoil(values, block.kinds == MALFORMED, block.lanes[:, 22], block.lanes[:, 23])


def trip_uids(trips: Columns, seed: int) -> pa.Array:
    """The id of each trip: the seed and the slot it first appeared in."""
    slots = pa.array(trips["trip_uid"]).cast(pa.string()).cast(pa.binary())
    return pc.binary_join_element_wise(pa.scalar(b"%d-" % seed, pa.binary()), slots, _EMPTY)


def _trip_fields(trips: Columns) -> dict[str, list[pa.Array]]:
    missing = trips["missing"] == 1
    return {
        "VendorID": json_integers(trips["VendorID"]),
        "tpep_pickup_datetime": json_times(trips["pickup"]),
        "tpep_dropoff_datetime": json_times(trips["pickup"] + trips["duration"]),
        "passenger_count": json_integers(trips["passenger_count"], missing),
        "trip_distance": json_cents(trips["trip_distance"]),
        "RatecodeID": json_integers(trips["RatecodeID"], missing),
        "store_and_fwd_flag": json_choices(np.where(missing, 2, trips["store_and_fwd_flag"]), _FLAGS),
        "PULocationID": json_integers(trips["PULocationID"]),
        "DOLocationID": json_integers(trips["DOLocationID"]),
        "payment_type": json_integers(trips["payment_type"]),
        "fare_amount": json_cents(trips["fare_amount"]),
        "extra": json_cents(trips["extra"]),
        "mta_tax": json_cents(trips["mta_tax"]),
        "tip_amount": json_cents(trips["tip_amount"]),
        "tolls_amount": json_cents(trips["tolls_amount"]),
        "improvement_surcharge": json_cents(trips["improvement_surcharge"]),
        "total_amount": json_cents(trips["total_amount"]),
        "congestion_surcharge": json_cents(trips["congestion_surcharge"], missing),
        "Airport_fee": json_cents(trips["Airport_fee"], missing),
    }


def _change_fields(trips: Columns, uids: pa.Array) -> dict[str, list[pa.Array]]:
    return {
        "trip_uid": [_QUOTE, uids, _QUOTE],
        "op": json_choices(trips["op"], _OPS),
        "updated_at": json_times(trips["updated_at"]),
    }
