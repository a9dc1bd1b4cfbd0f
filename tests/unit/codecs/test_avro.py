"""Avro records: exact, evolved to the reader's schema, and never a crash."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from lodestream import Avro
from lodestream.contracts.model import Field, Reading
from lodestream.errors import DeclarationError, RegistryUnavailable
from lodestream.sources.codecs import Limits, codec_for
from lodestream.sources.codecs.wire import frame

V1 = {
    "type": "record",
    "name": "taxi.Trip",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "fare", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "wall", "type": ["null", {"type": "long", "logicalType": "local-timestamp-millis"}]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "flag", "type": {"type": "enum", "name": "Flag", "symbols": ["N", "Y"]}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
        {
            "name": "stops",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "Stop", "fields": [{"name": "zone", "type": "int"}]},
            },
        },
    ],
}
RECORD = {
    "id": 7,
    "fare": Decimal("12.50"),
    "at": datetime(2024, 1, 1, 10, tzinfo=UTC),
    "wall": datetime(2024, 1, 1, 5),
    "day": date(2024, 1, 1),
    "flag": "Y",
    "tags": {"a": "b"},
    "stops": [{"zone": 4}],
}


def written(schema: Any, record: Any) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), record)
    return out.getvalue()


MESSAGE = written(V1, RECORD)


def test_a_record_keeps_every_type(read: Any) -> None:
    codec = codec_for(Avro(schema=json.dumps(V1)))
    assert codec.ddl == (
        "`id` bigint, `fare` decimal(8,2), `at` timestamp, `wall` timestamp_ntz, `day` date, `flag` string, "
        "`tags` map<string,string>, `stops` array<struct<zone:int>>"
    )
    assert read(codec, [MESSAGE]) == [{**RECORD, "tags": [("a", "b")]}]


def test_broken_bytes_are_a_reason(read: Any) -> None:
    codec = codec_for(Avro(schema=json.dumps(V1)))
    reasons = read(codec, [MESSAGE[:-3], MESSAGE + b"xyz", None, b"", b"\xff" * 20])
    assert reasons[:4] == [
        f"avro: truncated at byte {len(MESSAGE) - 3}",
        "avro: 3 bytes left over after the record",
        "avro: no value (null, a tombstone)",
        "avro: empty value",
    ]
    assert reasons[4].startswith("avro: ")


def test_each_writer_is_evolved_to_the_reader(read: Any, registry: Any) -> None:
    older = {
        "type": "record",
        "name": "Trip",
        "fields": [{"name": "id", "type": "int"}, {"name": "gone", "type": "string"}],
    }
    newer = {
        "type": "record",
        "name": "Trip",
        "fields": [{"name": "zone", "type": "string", "default": "?"}, {"name": "id", "type": "long"}],
    }
    registry.add(1, json.dumps(older))
    registry.add(2, json.dumps(newer))
    codec = codec_for(Avro(schema=json.dumps(newer), registry=registry.url))
    messages = [
        frame(1, written(older, {"id": 5, "gone": "x"})),
        frame(2, written(newer, {"zone": "JFK", "id": 2**40})),
        frame(1, written(older, {"id": 6, "gone": "y"})),
    ]
    assert read(codec, messages) == [{"zone": "?", "id": 5}, {"zone": "JFK", "id": 2**40}, {"zone": "?", "id": 6}]
    assert registry.asked == ["/schemas/ids/1", "/schemas/ids/2"], "each schema is fetched once"


def test_a_contract_takes_the_writers_fields_by_name(read: Any, registry: Any) -> None:
    registry.add(3, json.dumps(V1))
    codec = codec_for(Avro(registry=registry.url), "id bigint, fare decimal(8,2), missing int, flag int")
    assert read(codec, [frame(3, MESSAGE)]) == ["avro: flag is 'Y', not an int"]


def test_the_wire_format_is_checked(read: Any, registry: Any) -> None:
    registry.add(4, json.dumps(V1))
    registry.add(5, 'syntax = "proto3";', "PROTOBUF")
    registry.add(6, "not json")
    codec = codec_for(Avro(registry=registry.url), "id bigint")
    rows = read(
        codec,
        [frame(4, MESSAGE), b"\0\0\0", b"\1" + frame(4, MESSAGE)[1:], frame(99, b"x"), frame(5, b"x"), frame(6, b"x")],
    )
    assert rows[0] == {"id": 7}
    assert rows[1:5] == [
        "avro: 3 bytes, too short for a schema id",
        "avro: first byte is 0x01, not the 0x00 of the registry's wire format",
        "avro: schema 99 is not in the registry",
        "avro: schema 5 cannot be used: it is a PROTOBUF schema",
    ]
    assert rows[5].startswith("avro: schema 6 cannot be used")


def test_a_registry_that_does_not_answer_blames_no_row(read: Any, registry: Any) -> None:
    registry.add(7, json.dumps(V1))
    codec = codec_for(Avro(registry=registry.url), "id bigint")
    registry.failing = 3
    with pytest.raises(RegistryUnavailable, match="does not answer"):
        read(codec, [frame(7, MESSAGE)])
    registry.failing = 2
    assert read(codec, [frame(7, MESSAGE)]) == [{"id": 7}], "two failures are retried"


def test_a_password_in_the_address_is_never_shown() -> None:
    codec = codec_for(Avro(registry="http://user:hunter2@127.0.0.1:1"), "id bigint")
    with pytest.raises(RegistryUnavailable) as failure:
        codec.decode(pa.array([frame(8, b"x")]))
    assert "hunter2" not in str(failure.value)


def test_imported_schemas_are_fetched_and_put_in_place(read: Any, registry: Any) -> None:
    zone = {"type": "record", "name": "taxi.Zone", "fields": [{"name": "id", "type": "int"}]}
    trip = {
        "type": "record",
        "name": "taxi.Trip",
        "fields": [{"name": "a", "type": "taxi.Zone"}, {"name": "b", "type": ["null", "taxi.Zone"]}],
    }
    registry.add(9, json.dumps(trip), references=[{"name": "taxi.Zone", "subject": "zone", "version": 1}])
    registry.versions["/subjects/zone/versions/1"] = {"schema": json.dumps(zone)}
    codec = codec_for(Avro(registry=registry.url), "a struct<id:int>, b struct<id:int>")
    assert read(codec, [frame(9, b"\x02\x02\x04")]) == [{"a": {"id": 1}, "b": {"id": 2}}]


def test_bytes_that_would_fill_the_memory_are_a_reason(read: Any) -> None:
    nothing = {"type": "record", "name": "R", "fields": [{"name": "v", "type": {"type": "array", "items": "null"}}]}
    codec = codec_for(Avro(schema=json.dumps(nothing)), "v array<int>")
    a_billion = b"\x80\xa8\xd6\xb9\x07\x00"
    assert read(codec, [a_billion]) == ["avro: more than 250,000 items"]
    flags = {"type": "record", "name": "R", "fields": [{"name": "v", "type": {"type": "array", "items": "boolean"}}]}
    wide = written(flags, {"v": [True] * 2000})
    codec = codec_for(Avro(schema=json.dumps(flags)), limits=Limits(items=1000))
    assert read(codec, [wide]) == ["avro: more than 1,000 items"]


def test_bytes_that_nest_without_end_are_a_reason_and_not_a_crash(read: Any) -> None:
    chain = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "Node"]}],
    }
    codec = codec_for(Avro(schema=json.dumps(chain)), "id int")
    assert read(codec, [b"\x02\x02" * 200_000 + b"\x02\x00", b"\x02\x02\x04\x00"]) == [
        "avro: nested deeper than 100",
        {"id": 1},
    ]


def test_a_schema_that_cannot_be_read_is_a_declaration_error() -> None:
    with pytest.raises(DeclarationError, match="Avro schema"):
        codec_for(Avro(schema='{"type": "nonsense"}'))
    with pytest.raises(DeclarationError, match=r"missing\.avsc"):
        codec_for(Avro(schema="missing.avsc"))


CODEC = codec_for(Avro(schema=json.dumps(V1)))


@given(st.binary(max_size=80) | st.tuples(st.integers(0, len(MESSAGE)), st.binary(max_size=4)))
def test_any_bytes_are_a_row_or_a_reason(value: bytes | tuple[int, bytes]) -> None:
    damaged = (
        value if isinstance(value, bytes) else MESSAGE[: value[0]] + value[1] + MESSAGE[value[0] + len(value[1]) :]
    )
    columns, errors = CODEC.decode(pa.array([damaged]))
    columns.validate(full=True)
    assert len(errors) == 1


DECIMAL = {"type": "bytes", "logicalType": "decimal"}


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        ({**DECIMAL, "precision": 18, "scale": 2}, "1234567890123456.78", "1234567890123456.78"),
        ({**DECIMAL, "precision": 20, "scale": 4}, "1234567890123456.7850", "1234567890123456.79"),
        ("double", 2.675, "2.68"),
        ("long", 7, "7.00"),
    ],
)
def test_a_decimal_that_the_contract_rounds_may_come_as_any_number(kind: Any, given: Any, wanted: str) -> None:
    schema = {"type": "record", "name": "Fare", "fields": [{"name": "fare", "type": kind}]}
    fields = (Field("fare", "decimal(18,2)", reading=Reading(rounding="half_up")),)
    codec = codec_for(Avro(schema=json.dumps(schema)), fields)
    value = written(schema, {"fare": Decimal(given) if isinstance(given, str) else given})
    columns, errors = codec.decode(pa.array([value], pa.binary()))
    assert errors.to_pylist() == [None]
    assert columns.to_pylist() == [{"fare": Decimal(wanted)}]
