"""Protobuf messages: by descriptor, by .proto source, by the registry."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from lodestream import Protobuf
from lodestream.errors import DeclarationError
from lodestream.sources.codecs import Limits, codec_for, shape_of
from lodestream.sources.codecs.protobuf.codec import ProtobufCodec
from lodestream.sources.codecs.protobuf.files import compile_sources, indexes_of, message_type
from lodestream.sources.codecs.wire import frame

PROTO = """
syntax = "proto3";
package taxi;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Other { string name = 1; }
message Trip {
  message Stop { int32 zone = 1; }
  enum Flag { N = 0; Y = 1; }
  int64 id = 1;
  optional double fare = 2;
  Flag flag = 3;
  google.protobuf.Timestamp at = 4;
  repeated Stop stops = 5;
  map<string, int32> counts = 6;
  uint64 big = 7;
  google.protobuf.Int32Value passengers = 8;
  bytes raw = 9;
}
"""
DESCRIPTOR = compile_sources({"trip.proto": PROTO}, "trip.proto")
TRIP = message_type(DESCRIPTOR, "taxi.Trip")


def message(**values: Any) -> bytes:
    found = GetMessageClass(TRIP)(
        id=7, flag=1, big=2**64 - 1, raw=b"\0", counts={"a": 1}, stops=[{"zone": 4}], **values
    )
    found.at.FromDatetime(datetime(2024, 1, 1, tzinfo=UTC))
    return bytes(found.SerializeToString())


EXPECTED = {
    "id": 7,
    "flag": "Y",
    "at": datetime(2024, 1, 1, tzinfo=UTC),
    "stops": [{"zone": 4}],
    "counts": [("a", 1)],
    "big": Decimal(2**64 - 1),
    "raw": b"\0",
}


@pytest.mark.parametrize("name", ["trip.proto", "trip.desc"])
def test_a_message_keeps_every_type(tmp_path: Path, name: str, read: Any) -> None:
    (tmp_path / name).write_bytes(PROTO.encode() if name.endswith("proto") else DESCRIPTOR)
    codec = codec_for(Protobuf(message="taxi.Trip", descriptor=name), root=tmp_path)
    assert codec.ddl == (
        "`id` bigint, `fare` double, `flag` string, `at` timestamp, `stops` array<struct<zone:int>>, "
        "`counts` map<string,int>, `big` decimal(20,0), `passengers` int, `raw` binary"
    )
    assert read(codec, [message(), message(fare=0.5, passengers={"value": 3})]) == [
        EXPECTED,
        {**EXPECTED, "fare": 0.5, "passengers": 3},
    ]


def test_the_registry_names_schema_and_message(read: Any, registry: Any) -> None:
    registry.add(1, PROTO, "PROTOBUF")
    codec = codec_for(Protobuf(registry=registry.url), "id bigint, zone int")
    stop = GetMessageClass(message_type(DESCRIPTOR, "taxi.Trip.Stop"))(zone=9).SerializeToString()
    assert indexes_of(TRIP) == (1,)
    assert read(
        codec, [frame(1, message(), (1,)), frame(1, stop, (1, 0)), frame(1, b"", (5,)), frame(2, b"", (0,))]
    ) == [
        {"id": 7},
        {"zone": 9},
        "protobuf: message index [5] is not in its schema",
        "protobuf: schema 2 is not in the registry",
    ]


def test_broken_bytes_are_a_reason_and_none_at_all_are_the_defaults(read: Any) -> None:
    codec = ProtobufCodec(shape_of("id bigint"), message="taxi.Trip", descriptor=DESCRIPTOR)
    cut = message()[:-1]
    assert read(codec, [cut, b"", None, b"\xff\xff"]) == [
        f"protobuf: not a taxi.Trip ({len(cut)} bytes, truncated or malformed)",
        {"id": 0},
        "protobuf: no value (null, a tombstone)",
        "protobuf: not a taxi.Trip (2 bytes, truncated or malformed)",
    ]


def test_a_message_of_too_many_parts_is_a_reason(read: Any) -> None:
    codec = ProtobufCodec(shape_of("id bigint"), Limits(items=1000), message="taxi.Trip", descriptor=DESCRIPTOR)
    assert read(codec, [b"\x2a\x00" * 5000, b"\x2a\x00" * 1001]) == ["protobuf: more than 1,000 items"] * 2


def test_a_message_that_nests_without_end_is_a_reason(tmp_path: Path, read: Any) -> None:
    (tmp_path / "loop.proto").write_text('syntax = "proto3"; message Node { Node next = 1; int32 id = 2; }')
    codec = codec_for(Protobuf(message="Node", descriptor="loop.proto", columns="id int"), root=tmp_path)
    sizes = [0]
    for _ in range(160_000):
        sizes.append(sizes[-1] + 1 + len(varint(sizes[-1])))
    deep = b"".join(b"\x0a" + varint(size) for size in reversed(sizes[:-1]))
    assert read(codec, [deep, deep[-300:]]) == [
        "protobuf: nested deeper than 100",
        "protobuf: not a Node (300 bytes, truncated or malformed)",
    ]


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def test_what_cannot_be_columns_is_a_declaration_error(tmp_path: Path) -> None:
    (tmp_path / "loop.proto").write_text('syntax = "proto3"; message Node { Node next = 1; }')
    (tmp_path / "bad.proto").write_text("message {")
    with pytest.raises(DeclarationError, match="Node"):
        codec_for(Protobuf(message="Node", descriptor="loop.proto"), root=tmp_path)
    with pytest.raises(DeclarationError, match=r"bad\.proto"):
        codec_for(Protobuf(message="Node", descriptor="bad.proto"), root=tmp_path)
    with pytest.raises(DeclarationError, match="Nobody"):
        codec_for(Protobuf(message="Nobody", descriptor="loop.proto"), root=tmp_path)


CODEC = ProtobufCodec(shape_of("id bigint, at timestamp, flag string"), message="taxi.Trip", descriptor=DESCRIPTOR)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_row_or_a_reason(value: bytes) -> None:
    columns, errors = CODEC.decode(pa.array([value, message()[: len(value)] + value]))
    columns.validate(full=True)
    assert len(errors) == 2
