"""JSON to typed columns: what fits is exact, what does not fit has a reason."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodestream import Json
from lodestream.contracts.model import Field, Reading
from lodestream.errors import DeclarationError
from lodestream.sources.codecs import Codec, Limits, codec_for

EVERYTHING = (
    "flag boolean, tiny tinyint, small smallint, n int, big bigint, ratio float, x double, price decimal(6,2), "
    "name string, raw binary, day date, at timestamp, wall timestamp_ntz, "
    "list array<int>, inner struct<a:int,b:struct<c:string>>, counts map<string,int>"
)


def read(codec: Codec, *values: bytes | None) -> list[Any]:
    """Each row as its columns that are not null, or as its reason."""
    columns, errors = codec.decode(pa.array(values, pa.binary()))
    columns.validate(full=True)
    assert len(columns) == len(errors) == len(values)
    good = [{name: value for name, value in row.items() if value is not None} for row in columns.to_pylist()]
    return [row if error is None else error for row, error in zip(good, errors.to_pylist(), strict=True)]


def one(schema: str, value: bytes | str) -> Any:
    return read(codec_for(Json(schema)), value.encode() if isinstance(value, str) else value)[0]


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ("v boolean", "true", True),
        ("v tinyint", "-128", -128),
        ("v bigint", "9223372036854775807", 9223372036854775807),
        ("v double", "5", 5.0),
        ("v double", "0.1", 0.1),
        ("v double", "1e-400", 0.0),
        ("v double", "123456789012345678901234567890", 123456789012345678901234567890.0),
        ("v decimal(6,2)", "12.5", Decimal("12.50")),
        ("v decimal(6,2)", "1e2", Decimal("100.00")),
        ("v decimal(6,2)", "12.500000", Decimal("12.50")),
        ("v decimal(6,2)", "1.5" + "0" * 997, Decimal("1.50")),  # Arrow alone makes 0.00 of it
        ("v decimal(6,2)", "0e99999999999999999999", Decimal("0.00")),
        ("v decimal(38,0)", "9" * 38, Decimal("9" * 38)),
        ("v string", r'"a\u0000\ud83d\ude00\n"', "a\0\U0001f600\n"),
        ("v binary", '"AAE="', b"\0\1"),
        ("v date", '"2024-02-29"', date(2024, 2, 29)),
        ("v timestamp_ntz", '"2024-01-31T23:59:59"', datetime(2024, 1, 31, 23, 59, 59)),
        ("v timestamp_ntz", '"2024-01-31 23:59"', datetime(2024, 1, 31, 23, 59)),
        ("v timestamp_ntz", '"2024-01-31T23:59:59.120000000"', datetime(2024, 1, 31, 23, 59, 59, 120000)),
        ("v timestamp", '"2024-01-01T00:30:00Z"', datetime(2024, 1, 1, 0, 30, tzinfo=UTC)),
        ("v timestamp", '"2024-01-01T00:30:00+0530"', datetime(2023, 12, 31, 19, 0, tzinfo=UTC)),
        ("v timestamp", '"2024-01-01 00:30:00.5-03"', datetime(2024, 1, 1, 3, 30, 0, 500000, tzinfo=UTC)),
        ("v array<double>", "[1, null, 2.5]", [1.0, None, 2.5]),
        ("v map<string,int>", '{"a": 1, "b": null}', [("a", 1), ("b", None)]),
        ("v struct<a:int,b:string>", '{"b": "x", "other": []}', {"a": None, "b": "x"}),
    ],
)
def test_a_value_that_fits_is_exact(schema: str, text: str, value: Any) -> None:
    assert one(schema, f'{{"v": {text}}}') == {"v": value}


@pytest.mark.parametrize(
    ("schema", "text", "reason"),
    [
        ("v int", '"1"', "json: v is '1', not an int"),
        ("v int", "1.0", "json: v is 1.0, not an int"),
        ("v int", "1e2", "json: v is 1e2, not an int"),
        ("v int", "2147483648", "json: v is 2147483648, not an int"),
        ("v tinyint", "128", "json: v is 128, not a tinyint"),
        ("v bigint", "9223372036854775808", "json: v is 9223372036854775808, not a bigint"),
        ("v int", "true", "json: v is true, not an int"),
        ("v boolean", "1", "json: v is 1, not a boolean"),
        ("v double", '"abc"', "json: v is 'abc', not a double"),
        ("v double", "NaN", "json: v is NaN, not a double"),
        ("v double", "-Infinity", "json: v is -Infinity, not a double"),
        ("v double", "1e999", "json: v is 1e999, not a double"),
        ("v float", "3.5e38", "json: v is 3.5e38, not a float"),
        ("v decimal(6,2)", "1.555", "json: v is 1.555, which has more than 2 decimal places: not a decimal(6,2)"),
        ("v decimal(6,2)", "10000", "json: v is 10000, not a decimal(6,2)"),
        ("v decimal(6,2)", '"1.50"', "json: v is '1.50', not a decimal(6,2)"),
        ("v decimal(6,2)", "1e999999999999", "json: v is 1e999999999999, not a decimal(6,2)"),
        ("v string", "5", "json: v is 5, not a string"),
        ("v string", '{"a": 1}', "json: v is an object, not a string"),
        ("v string", r'"\ud800"', "json: v is '?', not a string"),
        ("v binary", '"A"', "json: v is 'A', not a binary"),
        ("v binary", '"AAAA=="', "json: v is 'AAAA==', not a binary"),
        ("v date", '"2024-02-30"', "json: v is '2024-02-30', not a date"),
        ("v date", '"2024-1-1"', "json: v is '2024-1-1', not a date"),
        ("v timestamp", "1704067200000", "json: v is 1704067200000, not a timestamp"),
        (
            "v timestamp",
            '"2024-01-01T00:00:00"',
            "json: v is '2024-01-01T00:00:00', which has no zone: not a timestamp",
        ),
        (
            "v timestamp_ntz",
            '"2024-01-01T00:00:00Z"',
            "json: v is '2024-01-01T00:00:00Z', which has a zone: not a timestamp_ntz",
        ),
        ("v timestamp_ntz", '"2024-01-01T24:00:00"', "json: v is '2024-01-01T24:00:00', not a timestamp_ntz"),
        (
            "v timestamp_ntz",
            '"2024-01-01T00:00:00.1234567"',
            "json: v is '2024-01-01T00:00:00.1234567', not a timestamp_ntz",
        ),
        ("v array<int>", '[1, "x"]', "json: v[1] is 'x', not an int"),
        ("v array<int>", "1", "json: v is 1, not an array"),
        ("v struct<a:struct<b:int>>", '{"a": {"b": "x"}}', "json: v.a.b is 'x', not an int"),
        ("v map<string,int>", '{"k": "x"}', "json: v['k'] is 'x', not an int"),
        ("v string", f'"{"y" * 50}", "V": 1, "v": 2', "json: v is given twice"),
    ],
)
def test_a_value_that_does_not_fit_is_a_reason(schema: str, text: str, reason: str) -> None:
    assert one(schema, f'{{"v": {text}}}') == reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "json: no value (null, a tombstone)"),
        (b"", "json: empty value"),
        (b"\xff{}", "json: not UTF-8 at byte 0"),
        (b'{"v": "\xc3("}', "json: not UTF-8 at byte 7"),
        (b'{"v": 1', "json: malformed at byte 7"),
        (b'{"v": 1} {}', "json: malformed at byte 9"),
        (b'{"v": "a\nb"}', "json: malformed at byte 8"),
        (b"null", "json: not an object"),
        (b"[1]", "json: not an object"),
        (b'\xef\xbb\xbf{"v": 1}', "json: malformed at byte 0"),
        (b'{"v":' + b"[" * 200_000, "json: nested deeper than 100"),
        (b'{"V": 1}', "json: v is spelt 'V' in the event"),
    ],
)
def test_bytes_that_are_no_row_are_a_reason(value: bytes | None, reason: str) -> None:
    assert read(codec_for(Json("v int")), value) == [reason]


def test_every_field_that_does_not_fit_is_named() -> None:
    found = one("a int, b int, c int", '{"a": "x", "b": 1, "c": true}')
    assert found == "json: a is 'x', not an int; c is true, not an int"


def test_missing_null_and_unknown_fields_are_no_reason() -> None:
    assert one("a int, b int", '{"a": null, "other": {"B": [NaN]}}') == {}


def test_padding_and_line_breaks_are_no_reason() -> None:
    assert one("a int", ' \r\n{\n\t"a" :\n1 }\n ') == {"a": 1}


def test_a_long_value_is_shortened_in_its_reason() -> None:
    assert one("v int", json.dumps({"v": "y" * 1000})) == f"json: v is '{'y' * 40}…', not an int"


def test_a_message_beyond_the_limits_is_a_reason_and_not_an_allocation() -> None:
    codec = codec_for(Json("v array<struct<a:int>>"), limits=Limits(value_bytes=200_000, items=1000))
    wide = b'{"v": [' + b"{}," * 50_000 + b"{}]}"
    assert read(codec, wide, b" " * 200_001) == [
        "json: more than 1,000 items",
        "json: 200,001 bytes, the limit is 200,000",
    ]


def test_a_contract_says_what_its_fields_are_called_and_how_they_are_read() -> None:
    fields = (
        Field("vendor_id", "int", source="VendorID", aliases=("vendor",)),
        Field("fare", "decimal(10,2)", reading=Reading(coerce=True)),
        Field("at", "timestamp", reading=Reading(epoch="ms")),
        Field("Flag", "string", reading=Reading(any_case=True)),
        Field("speed", "double", reading=Reading(non_finite=True)),
    )
    codec = codec_for(Json(), fields)
    assert codec.ddl == "`VendorID` int, `fare` string, `at` bigint, `Flag` string, `speed` double"
    rows = read(
        codec,
        b'{"VendorID": 1, "fare": 1.50, "at": 1704067200000, "FLAG": "N", "speed": Infinity}',
        b'{"vendor": 2, "fare": "1.50", "Flag": "Y"}',
        b'{"vendor": 2, "VendorID": 2, "flag": "Y", "FLAG": "N", "fare": [1]}',
    )
    assert rows == [
        {"VendorID": 1, "fare": "1.50", "at": 1704067200000, "Flag": "N", "speed": float("inf")},
        {"VendorID": 2, "fare": "1.50", "Flag": "Y"},
        "json: VendorID is given twice; fare is an array, not a plain value; Flag is given twice",
    ]


def test_half_a_surrogate_pair_is_no_plain_value() -> None:
    fields = (Field("v", "int", reading=Reading(coerce=True)),)
    assert read(codec_for(Json(), fields), rb'{"v": "\ud800"}') == ["json: v is '?', not a plain value"]


def test_a_schema_that_cannot_be_decoded_to_is_a_declaration_error() -> None:
    with pytest.raises(DeclarationError, match="'a interval'"):
        codec_for(Json("a interval"))
    with pytest.raises(DeclarationError, match="no schema"):
        codec_for(Json())


@pytest.mark.parametrize("schema", ["m map<int,string>", [Field("m", "array<map<int,string>>")]])
def test_a_map_by_numbers_is_refused_before_any_row_comes(schema: Any) -> None:
    with pytest.raises(DeclarationError, match="names in an event are text"):
        codec_for(Json(), schema)


def test_a_codec_travels_to_a_worker() -> None:
    codec = pickle.loads(pickle.dumps(codec_for(Json("v int"))))
    assert read(codec, b'{"v": 1}') == [{"v": 1}]


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=6), inside, max_size=4),
    max_leaves=12,
)
CODEC = codec_for(Json(EVERYTHING))
NAMES = [part.split()[0] for part in EVERYTHING.replace("<a:int,b:struct<c:string>>", "").split(", ")]


@given(st.lists(st.none() | st.binary(max_size=60), max_size=5))
def test_any_bytes_are_a_row_or_a_reason(values: list[bytes | None]) -> None:
    read(CODEC, *values)


@given(st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), ANY_JSON, max_size=8))
def test_any_json_is_a_row_or_a_reason(event: dict[str, Any]) -> None:
    read(CODEC, json.dumps(event).encode())


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**63), 2**63 - 1),
    st.text(st.characters(exclude_categories=("Cs",))),
)
def test_what_was_written_is_what_is_read(x: float, big: int, name: str) -> None:
    text = json.dumps({"x": x, "big": big, "name": name}, ensure_ascii=len(name) % 2 == 0)
    assert one("x double, big bigint, name string", text) == {"x": x, "big": big, "name": name}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1234567890123456.78", "1234567890123456.78"),  # no double holds these digits
        ("1234567890123456.785", "1234567890123456.79"),
        ("-2.675", "-2.68"),
        ("0.005", "0.01"),
        ("1e-999999999", "0.00"),
        ("1e-99999999999999999999", "0.00"),
        ("9999999999999999.994", "9999999999999999.99"),
    ],
)
def test_decimals_are_rounded_from_the_digits_of_the_event(text: str, value: str) -> None:
    fields = (Field("v", "decimal(18,2)", reading=Reading(rounding="half_up")),)
    assert read(codec_for(Json(), fields), f'{{"v": {text}}}'.encode()) == [{"v": Decimal(value)}]


@pytest.mark.parametrize("text", ["9999999999999999.995", "1e16", "1e999999999", "NaN", '"1.5"', "true"])
def test_what_is_no_such_decimal_is_not_rounded_into_one(text: str) -> None:
    fields = (Field("v", "decimal(18,2)", reading=Reading(rounding="half_up")),)
    (reason,) = read(codec_for(Json(), fields), f'{{"v": {text}}}'.encode())
    assert "not a decimal(18,2)" in reason
