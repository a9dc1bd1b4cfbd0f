"""The same events as Avro or Protobuf, under a schema that the registry has checked before the first one is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa

from .block import Block, encode_block, trip_uids
from .dirt import MALFORMED
from .malformed import WIRE_STYLES, spoil

Format = Literal["json", "avro", "protobuf"]
Encode = Callable[[Block, int, bool], tuple[pa.Array, pa.Array]]
_SCHEMAS = Path(__file__).parent.parent / "schemas"
_MESSAGE = "nyc.taxi.TripEvent"
_FLAGS, _OPS = ("N", "Y"), ("c", "u", "d")
_SOMETIMES_MISSING = ("passenger_count", "RatecodeID", "store_and_fwd_flag", "congestion_surcharge", "Airport_fee")
_INTEGERS = ("VendorID", "passenger_count", "RatecodeID", "PULocationID", "DOLocationID", "payment_type")
_CENTS = (
    "trip_distance", "fare_amount", "extra", "mta_tax", "tip_amount", "tolls_amount", "improvement_surcharge",
    "total_amount", "congestion_surcharge", "Airport_fee",
)  # fmt: skip


class Serialiser(Protocol):
    """One message per record, with its schema's id in front."""

    def serialise(self, records: Iterator[dict[str, Any]]) -> list[bytes]: ...


def encoder(form: Format, registry: str | None, topic: str) -> Encode:
    """How the events of a topic are written; the schema is registered under the topic's subject, if its rule allows."""
    if form == "json":
        return encode_block
    if registry is None:
        raise ValueError(f"{form} events name their schema by its id in a registry: give its address")
    serialiser = open_serialiser(form, registry, f"{topic}-value")

    def encode(block: Block, seed: int, keyed: bool) -> tuple[pa.Array, pa.Array]:
        keys = trip_uids(block.trips, seed) if keyed else pa.nulls(len(block.kinds), pa.binary())
        values = pa.array(serialiser.serialise(records(block, keys if keyed else None)), pa.binary())
        where = block.kinds == MALFORMED
        return keys, spoil(values, where, block.lanes[:, 22], block.lanes[:, 23], WIRE_STYLES)

    return encode


def open_serialiser(form: Format, registry: str, subject: str) -> Serialiser:
    """What writes records of the event; its schema is checked and registered now."""
    from lodestream.sources.codecs.avro.serialise import AvroSerialiser
    from lodestream.sources.codecs.protobuf.serialise import ProtobufSerialiser

    if form == "avro":
        return AvroSerialiser(registry, subject, (_SCHEMAS / "trip_event.avsc").read_text())
    return ProtobufSerialiser(registry, subject, (_SCHEMAS / "trip_event.proto").read_text(), _MESSAGE)


def records(block: Block, uids: pa.Array | None) -> Iterator[dict[str, Any]]:
    """The events of a block, one by one: the same names and values as their JSON spells."""
    trips, missing = block.trips, block.trips["missing"] == 1
    columns: dict[str, list[Any]] = {
        "tpep_pickup_datetime": _times(trips["pickup"]),
        "tpep_dropoff_datetime": _times(trips["pickup"] + trips["duration"]),
        "store_and_fwd_flag": [_FLAGS[code] for code in trips["store_and_fwd_flag"].tolist()],
    }
    columns |= {name: trips[name].tolist() for name in _INTEGERS}
    columns |= {name: (trips[name] / 100).tolist() for name in _CENTS}
    if uids is not None:
        columns["trip_uid"] = [uid.decode() for uid in uids.to_pylist()]
        columns["op"] = [_OPS[code] for code in trips["op"].tolist()]
        columns["updated_at"] = _times(trips["updated_at"])
    for name in _SOMETIMES_MISSING:
        for row in np.flatnonzero(missing):
            columns[name][row] = None
    names = tuple(columns)
    return (dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _times(seconds: Any) -> list[str]:
    found: list[str] = seconds.astype("datetime64[s]").astype(str).tolist()
    return found
