"""Avro and Protobuf events say what the JSON events say; the registry's part is tested where a real one runs."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from generator import ALL_DIRT, Dirt, encoder
from generator.__main__ import main
from generator.block import encode_block, make_block, trip_uids
from generator.dirt import MALFORMED
from generator.malformed import WIRE_STYLES
from generator.wire import records


@pytest.mark.parametrize("dirt", [ALL_DIRT, Dirt(malformed=0.1)])
def test_records_are_the_json_events(dirt: Dirt):
    block = make_block(0, 5_000, 3, dirt, 5_000)
    uids = trip_uids(block.trips, 3) if dirt.keyed else None
    _, values = encode_block(block, 3, dirt.keyed)
    pairs = zip(records(block, uids), values.to_pylist(), block.kinds, strict=True)
    readable = [(record, value) for record, value, kind in pairs if kind != MALFORMED]
    assert len(readable) > 4_000
    assert all(json.loads(value) == record for record, value in readable)


def test_each_way_to_spoil_a_message_leaves_no_good_one():
    message = b"\0\0\0\0\7\0\x08\x02\x12\x132024-01-01T00:16:31\x1a\x132024-01-01T00:23:25"
    for style in WIRE_STYLES:
        for size in (0, 1, 17, 18, 255, 65_535):
            spoiled = style(message, size)
            cut_in_a_time = 10 <= len(spoiled) < 29 and message.startswith(spoiled)
            assert cut_in_a_time or spoiled[:5] != message[:5], (style, size)


def test_a_schema_needs_a_registry():
    with pytest.raises(ValueError, match="registry"):
        encoder("avro", None, "taxi.trips")
    asked = CliRunner().invoke(main, ["--format", "avro", "--events", "1"])
    assert asked.exit_code == 2
    assert "--registry and --bootstrap" in asked.output


def test_a_registry_that_does_not_answer_is_named():
    arguments = ["--format", "avro", "--events", "1", "--registry", "http://127.0.0.1:9", "--bootstrap", "127.0.0.1:9"]
    asked = CliRunner().invoke(main, arguments)
    assert asked.exit_code == 1
    assert "the schema registry at http://127.0.0.1:9 does not answer" in asked.output
