"""A small message that would become half a gigabyte is refused before it does."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lodestream import Avro, Csv, Json, Protobuf
from lodestream.pipeline.decoders import DecoderDeclaration as DecodeDecl
from lodestream.sources.codecs import codec_for

MEGABYTE = 1_000_000
LIST_OF_NOTHING = {"type": "record", "name": "R", "fields": [{"name": "v", "type": {"type": "array", "items": "null"}}]}
PROTO = 'syntax = "proto3"; message Part {} message Whole { repeated Part parts = 1; int32 id = 2; }'


def zigzag(number: int) -> bytes:
    number <<= 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


# What each would take when built: 65 million places of a list; four million messages; four million boxed numbers.
BOMBS: list[tuple[DecodeDecl, Callable[[], bytes]]] = [
    (Avro(schema=json.dumps(LIST_OF_NOTHING), columns="v array<int>"), lambda: zigzag(65_000_000) + b"\0"),
    (Protobuf(message="Whole", descriptor="whole.proto", columns="id int"), lambda: b"\x0a\x00" * (4 * MEGABYTE)),
    (Json("v array<bigint>"), lambda: b'{"v":[' + b"1," * (4 * MEGABYTE) + b"1]}"),
    (Csv("a int, b int"), lambda: b"," * (8 * MEGABYTE)),
]


@pytest.mark.parametrize(("decoder", "bomb"), BOMBS, ids=["avro", "protobuf", "json", "csv"])
def test_a_message_that_inflates_is_refused_in_little_memory(
    decoder: DecodeDecl, bomb: Callable[[], bytes], tmp_path: Path
) -> None:
    (tmp_path / "whole.proto").write_text(PROTO)
    codec = codec_for(decoder, root=tmp_path)
    values = pa.array([bomb()], pa.binary())
    codec.decode(pa.array([b"x"], pa.binary()))  # what is loaded once is not this message's cost
    tracemalloc.start()
    _, errors = codec.decode(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert errors.to_pylist() == [f"{type(decoder).__name__.lower()}: more than 250,000 items"]
    assert peak < 4 * values.nbytes + MEGABYTE, "the bytes, their text, and little more"
