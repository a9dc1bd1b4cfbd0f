"""Parquet records as JSON objects, without loss."""

from __future__ import annotations

import base64
import json
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lodestream.sources.files.json_values import json_rows


def encoded(array: pa.Array) -> list[Any]:
    texts = json_rows(pa.RecordBatch.from_arrays([array], ["a"])).to_pylist()
    return [json.loads(text, parse_float=Decimal, parse_constant=_no_constants)["a"] for text in texts]


def _no_constants(text: str) -> Any:
    raise AssertionError(f"{text} is no JSON")


def test_numbers_keep_all_their_digits() -> None:
    huge = Decimal("12345678901234567890123456.7890123456")
    assert encoded(pa.array([huge, Decimal("0.0000000001"), None], pa.decimal128(38, 10))) == [
        huge,
        Decimal("0.0000000001"),
        None,
    ]
    assert encoded(pa.array([2**63 - 1, -(2**63)], pa.int64())) == [2**63 - 1, -(2**63)]
    assert encoded(pa.array([2**64 - 1], pa.uint64())) == [2**64 - 1]


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))))
def test_floats_come_back_equal(values: list[float | None]) -> None:
    back = [None if value is None else float(value) for value in encoded(pa.array(values, pa.float64()))]
    assert back == values


def test_what_json_has_no_number_for_is_text() -> None:
    specials = [float("nan"), float("inf"), float("-inf"), 1.5, None]
    expected = ["NaN", "Infinity", "-Infinity", Decimal("1.5"), None]
    assert encoded(pa.array(specials, pa.float64())) == expected
    assert encoded(pa.array(specials, pa.float32())) == expected
    assert encoded(pa.array([[value] for value in specials], pa.list_(pa.float64()))) == [[value] for value in expected]


@given(st.lists(st.one_of(st.none(), st.text())))
def test_any_text_comes_back_equal(values: list[str | None]) -> None:
    assert encoded(pa.array(values, pa.string())) == values
    assert encoded(pa.array(values, pa.string()).dictionary_encode()) == values


@given(st.lists(st.one_of(st.none(), st.binary())))
def test_bytes_are_base64(values: list[bytes | None]) -> None:
    back = [None if text is None else base64.b64decode(text) for text in encoded(pa.array(values, pa.binary()))]
    assert back == values


def test_moments_are_iso_text_to_their_full_precision() -> None:
    nanos = pa.array([1_700_000_000_123_456_789], pa.timestamp("ns", tz="Europe/Berlin"))
    assert encoded(nanos) == ["2023-11-14T22:13:20.123456789Z"]
    assert encoded(pa.array([1_700_000_000_000_001], pa.timestamp("us"))) == ["2023-11-14T22:13:20.000001"]
    assert encoded(pa.array([date(2024, 2, 29), None])) == ["2024-02-29", None]
    assert encoded(pa.array([time(1, 2, 3, 4)], pa.time64("us"))) == ["01:02:03.000004"]
    assert encoded(pa.array([timedelta(seconds=1)], pa.duration("us"))) == [1_000_000]


def test_nested_values_keep_their_shape() -> None:
    kind = pa.struct([("x", pa.list_(pa.decimal128(10, 2))), ("y", pa.timestamp("ms")), ('q"', pa.string())])
    value = {"x": [Decimal("1.10"), None], "y": 1_700_000_000_123, 'q"': "a\n\x00"}
    assert encoded(pa.array([value, None], kind)) == [
        {"x": [Decimal("1.10"), None], "y": "2023-11-14T22:13:20.123", 'q"': "a\n\x00"},
        None,
    ]
    assert encoded(pa.array([[("k", 1), ("l", None)]], pa.map_(pa.string(), pa.int32()))) == [{"k": 1, "l": None}]
    assert encoded(pa.array([[(1, "x")]], pa.map_(pa.int32(), pa.string()))) == [[[1, "x"]]]


def test_column_names_are_escaped_and_nulls_are_written() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([None, 1]), pa.array(["x", None])], ['a"b\n', "ü"])
    assert [json.loads(text) for text in json_rows(batch).to_pylist()] == [
        {'a"b\n': None, "ü": "x"},
        {'a"b\n': 1, "ü": None},
    ]
