"""Schemas through a real registry: registered, checked, fetched by id, evolved, and missed when it is gone."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lodestream import Avro, Protobuf
from lodestream.errors import ContractError, RegistryUnavailable
from lodestream.sources.codecs import Codec, Registry, codec_for, decode_frame, registry_failure
from lodestream.sources.codecs.avro.serialise import AvroSerialiser
from lodestream.sources.codecs.protobuf.serialise import ProtobufSerialiser
from lodestream.sources.codecs.registry import RegisteredSchema
from lodestream.sources.codecs.serialise import register
from lodestream.sources.codecs.wire import frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def trip(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Trip", "namespace": "taxi", "fields": list(fields)})


ID = {"name": "id", "type": "long"}
FARE = {"name": "fare", "type": ["null", "double"], "default": None}
AT = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0}
PROTO = """syntax = "proto3";
package taxi;
message Header { string name = 1; }
message Trip { int64 id = 1; optional double fare = 2; repeated string tags = 3; }
"""
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def read(codec: Codec, values: list[bytes]) -> list[Any]:
    columns, errors = codec.decode(pa.array(values, pa.binary()))
    return [row if error is None else error for row, error in zip(columns.to_pylist(), errors.to_pylist(), strict=True)]


def test_two_writers_of_one_subject_are_read_as_one(registry: Any, subject: Callable[[], str]) -> None:
    name = subject()
    older = AvroSerialiser(registry.url, name, trip(ID))
    newer = AvroSerialiser(registry.url, name, trip(ID, FARE, AT))
    assert older.schema_id != newer.schema_id
    messages = older.serialise([{"id": 1}]) + newer.serialise([{"id": 2, "fare": 9.5, "at": NOON}])
    codec = codec_for(Avro(schema=trip(ID, FARE), registry=registry.url))
    assert read(codec, messages) == [{"id": 1, "fare": None}, {"id": 2, "fare": 9.5}]
    by_contract = codec_for(Avro(registry=registry.url), "id bigint, at timestamp")
    assert read(by_contract, messages) == [{"id": 1, "at": None}, {"id": 2, "at": NOON}]


def test_a_schema_that_breaks_its_readers_is_refused_with_the_reason(registry: Any, subject: Callable[[], str]) -> None:
    name, client = subject(), Registry(registry.url)
    first = register(client, name, RegisteredSchema("AVRO", trip(ID, FARE)))
    client.set_compatibility(name, "BACKWARD")
    breaking = RegisteredSchema("AVRO", trip(ID, {"name": "zone", "type": "string"}))
    assert not client.check(name, breaking).ok
    with pytest.raises(ContractError, match="not compatible"):
        register(client, name, breaking)
    assert register(client, name, RegisteredSchema("AVRO", trip(ID, FARE))) == first, "the same schema has the same id"
    assert json.loads(client.by_version(name).text) == json.loads(trip(ID, FARE))


def test_protobuf_messages_name_their_type(registry: Any, subject: Callable[[], str]) -> None:
    writer = ProtobufSerialiser(registry.url, subject(), PROTO, "taxi.Trip")
    messages = writer.serialise([{"id": 1, "fare": None, "tags": ["a"]}, {"id": 2, "fare": 1.5}])
    codec = codec_for(Protobuf(registry=registry.url), "id bigint, fare double, tags array<string>")
    assert read(codec, messages) == [{"id": 1, "fare": None, "tags": ["a"]}, {"id": 2, "fare": 1.5, "tags": []}]


def test_an_unknown_id_is_the_fault_of_its_row_alone(registry: Any, subject: Callable[[], str]) -> None:
    good = AvroSerialiser(registry.url, subject(), trip(ID)).serialise([{"id": 1}])
    codec = codec_for(Avro(registry=registry.url), "id bigint")
    assert read(codec, [*good, frame(999_999, b"x"), b"\1abcdef"]) == [
        {"id": 1},
        "avro: schema 999999 is not in the registry",
        "avro: first byte is 0x01, not the 0x00 of the registry's wire format",
    ]


def test_a_silent_registry_stops_the_batch_and_blames_no_row(
    line: Any, subject: Callable[[], str], spark: SparkSession
) -> None:
    values = AvroSerialiser(line.url, subject(), trip(ID, FARE)).serialise([{"id": 1, "fare": 2.5}, {"id": 2}])
    rows = [(bytearray(value), place) for place, value in enumerate([*values, b"\0\0"])]
    bronze = spark.createDataFrame(rows, "value binary, at int")
    codec = codec_for(Avro(registry=line.url), "id bigint, fare double")
    line.cut()
    with pytest.raises(Exception, match="RegistryUnavailable") as failure:
        decode_frame(bronze, codec).collect()
    found = registry_failure(failure.value)
    assert isinstance(found, RegistryUnavailable)
    assert str(line.port) in found.what
    line.mend()
    decoded = decode_frame(bronze, codec).orderBy("_lode.at").select("id", "fare", "_error").collect()
    assert [tuple(row) for row in decoded] == [
        (1, 2.5, None),
        (2, None, None),
        (None, None, "avro: 2 bytes, too short for a schema id"),
    ]
