"""CSV lines and Debezium envelopes."""

from __future__ import annotations

import io
import json
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from lodestream import Avro, Csv, Debezium, Json
from lodestream.sources.codecs import codec_for

CSV = codec_for(Csv("id int, fare decimal(6,2), name string, day date, ok boolean, x double"))


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (
            b'1,12.5,"a, ""b""",2024-01-31,true,1e3',
            {"id": 1, "fare": Decimal("12.50"), "name": 'a, "b"', "day": date(2024, 1, 31), "ok": True, "x": 1000.0},
        ),
        (b",,,,,\r\n", {}),
        (b'"","","","","",""', {}),
        (
            b"1,1.555,a,2024-01-31,true,1",
            "csv: fare is 1.555, which has more than 2 decimal places: not a decimal(6,2)",
        ),
        (
            b"x,1,a,2024-02-30,maybe,1",
            "csv: id is 'x', not an int; day is '2024-02-30', not a date; ok is 'maybe', not a boolean",
        ),
        (b"1,2", "csv: 2 fields, the schema has 6"),
        (b'1,2,"a', "csv: malformed (unexpected end of data)"),
        (b"\xff", "csv: not UTF-8 at byte 0"),
        (b"", "csv: empty value"),
    ],
)
def test_a_line_is_a_row_or_a_reason(line: bytes, row: Any, read: Any) -> None:
    assert read(CSV, [line]) == [row]


def test_the_separator_is_the_declared_one(read: Any) -> None:
    assert read(codec_for(Csv("a int, b string", delimiter=";", quote="'")), [b"1;'x;y'"]) == [{"a": 1, "b": "x;y"}]


def test_a_line_of_commas_does_not_become_a_list_of_millions(read: Any) -> None:
    assert read(CSV, [b"," * 8_000_000]) == ["csv: more than 250,000 items"]


ROW = {"id": 1, "name": "a"}
SOURCE = {"ts_ms": 1704067200000, "lsn": 42, "table": "orders", "sequence": '["1","2"]', "version": "3.6"}
ORDERS = codec_for(Debezium(Json("id int, name string")))
META = {"__ts_ms": 5, "__source_ts_ms": 1704067200000, "__lsn": 42, "__sequence": '["1","2"]', "__table": "orders"}


def envelope(op: Any, before: Any, after: Any) -> dict[str, Any]:
    return {"before": before, "after": after, "op": op, "ts_ms": 5, "source": SOURCE}


def test_an_envelope_is_the_row_and_what_happened_to_it(read: Any) -> None:
    events = [
        envelope("c", None, ROW),
        envelope("u", ROW, {**ROW, "name": "b"}),
        envelope("d", ROW, None),
        envelope("r", None, ROW),
    ]
    wrapped = [{"schema": {"type": "struct"}, "payload": event} for event in events]
    expected = [
        {**ROW, **META, "__op": "c", "__deleted": False},
        {"id": 1, "name": "b", **META, "__op": "u", "__deleted": False, "__before": ROW},
        {**ROW, **META, "__op": "d", "__deleted": True, "__before": ROW},
        {**ROW, **META, "__op": "r", "__deleted": False},
    ]
    assert read(ORDERS, [json.dumps(event).encode() for event in events]) == expected
    assert read(ORDERS, [json.dumps(event).encode() for event in wrapped]) == expected


def test_a_tombstone_is_no_broken_row(read: Any) -> None:
    assert read(ORDERS, [None]) == [{"__op": "tombstone", "__deleted": True}]


def test_what_is_no_envelope_is_a_reason(read: Any) -> None:
    events = [
        {"id": 1},
        envelope("x", None, ROW),
        envelope("d", None, None),
        envelope("c", None, {"id": "x"}),
        {"payload": None},
        envelope("c", None, 5),
        envelope(["c"], None, ROW),
    ]
    assert read(ORDERS, [json.dumps(event).encode() for event in events]) == [
        "debezium: op is None, not one of c, u, d, r, t, m",
        "debezium: op is 'x', not one of c, u, d, r, t, m",
        "debezium: op d without the row before it",
        "debezium: id is 'x', not an int",
        "debezium: payload is not an object",
        "debezium: before or after is not an object",
        "debezium: op is ['c'], not one of c, u, d, r, t, m",
    ]


def test_an_envelope_in_avro(read: Any) -> None:
    row = {
        "type": "record",
        "name": "Value",
        "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}],
    }
    source = {
        "type": "record",
        "name": "Source",
        "fields": [{"name": "ts_ms", "type": "long"}, {"name": "lsn", "type": ["null", "long"]}],
    }
    schema = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", row]},
            {"name": "after", "type": ["null", "Value"]},
            {"name": "op", "type": "string"},
            {"name": "source", "type": source},
        ],
    }
    out = io.BytesIO()
    schemaless_writer(
        out, parse_schema(schema), {"before": None, "after": ROW, "op": "c", "source": {"ts_ms": 1, "lsn": 2}}
    )
    codec = codec_for(Debezium(Avro(schema=json.dumps(schema))), "id int, name string")
    assert read(codec, [out.getvalue()]) == [{**ROW, "__op": "c", "__deleted": False, "__source_ts_ms": 1, "__lsn": 2}]


@given(
    st.binary(max_size=40),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda i: (
            st.lists(i, max_size=3)
            | st.dictionaries(st.sampled_from(["op", "after", "before", "payload", "source", "id"]), i, max_size=4)
        ),
        max_leaves=8,
    ),
)
def test_anything_is_a_row_or_a_reason(value: bytes, event: Any) -> None:
    for codec in (CSV, ORDERS):
        columns, errors = codec.decode(pa.array([value, json.dumps(event).encode()]))
        columns.validate(full=True)
        assert len(errors) == 2
