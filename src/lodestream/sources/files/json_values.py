"""Columnar records as JSON objects, without loss.

Integers, decimals and floats are numbers with all their digits (NaN and infinities are the strings "NaN", "Infinity",
"-Infinity"); dates, times and timestamps are ISO 8601 text to their full precision, in UTC with a `Z` where the column
has a zone and without one where it has none; bytes are base64 text; durations are integers in the column's unit; maps
are objects when their keys are text, else arrays of [key, value]; nulls are written as null.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

_SPECIAL = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"', "-nan": '"NaN"'}
_NEEDS_ESCAPE = r'["\\\x00-\x1f]'


def json_rows(batch: pa.RecordBatch) -> pa.Array:
    """One JSON object a row, as UTF-8 bytes."""
    if batch.num_columns == 0:
        return pa.array([b"{}"] * batch.num_rows, pa.binary())
    parts: list[Any] = []
    for position, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        parts += [pa.scalar(("{" if position == 0 else ",") + _quote(name) + ":"), _texts(column)]
    joined = pc.binary_join_element_wise(*parts, pa.scalar("}"), "")
    return joined.cast(pa.binary())


def _texts(column: pa.Array) -> pa.Array:
    """Each value as JSON text; whole columns at once where Arrow can."""
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    vectorised = _vectorised(column.type)
    if vectorised is None:
        return pa.array([_text(scalar) for scalar in column], pa.string())
    return pc.fill_null(vectorised(column), "null")


def _vectorised(kind: pa.DataType) -> Callable[[pa.Array], pa.Array] | None:
    if kinds.is_boolean(kind) or kinds.is_integer(kind):
        return _cast
    if kinds.is_decimal(kind):
        return _cast
    if kinds.is_float32(kind) or kinds.is_float64(kind):
        return _floats
    if kinds.is_timestamp(kind):
        return _timestamps
    if kinds.is_date(kind) or kinds.is_time(kind):
        return lambda column: _quoted(_cast(column))
    if kinds.is_string(kind) or kinds.is_large_string(kind):
        return _strings
    return None


def _cast(column: pa.Array) -> pa.Array:
    return pc.cast(column, pa.string())


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _floats(column: pa.Array) -> pa.Array:
    texts = _cast(column)
    if pc.all(pc.is_finite(column), min_count=0).as_py():
        return texts
    return pa.array([None if text is None else _SPECIAL.get(text, text) for text in texts.to_pylist()], pa.string())


def _timestamps(column: pa.Array) -> pa.Array:
    if column.type.tz is not None:
        column = column.cast(pa.timestamp(column.type.unit, tz="UTC"))
    return _quoted(pc.replace_substring(_cast(column), " ", "T"))


def _strings(column: pa.Array) -> pa.Array:
    column = _cast(column)
    if pc.any(pc.match_substring_regex(column, _NEEDS_ESCAPE), min_count=0).as_py():
        return pa.array([None if text is None else _quote(text) for text in column.to_pylist()], pa.string())
    return _quoted(column)


def _text(scalar: pa.Scalar) -> str:
    """One value of a nested or rare type; flat values inside go the same way as flat columns."""
    kind = scalar.type
    if not scalar.is_valid:
        return "null"
    if kinds.is_struct(kind):
        fields = (f"{_quote(field.name)}:{_text(scalar[position])}" for position, field in enumerate(kind))
        return "{" + ",".join(fields) + "}"
    if kinds.is_map(kind):
        return _map(scalar)
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return "[" + ",".join(map(_text, scalar.values)) + "]"
    if kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_fixed_size_binary(kind):
        return '"' + base64.b64encode(scalar.as_py()).decode("ascii") + '"'
    if kinds.is_duration(kind):
        return str(scalar.value)
    if kinds.is_float16(kind):
        return _number(float(scalar.as_py()))
    texts = _texts(pa.array([scalar], kind))
    return str(texts[0].as_py())


def _map(scalar: pa.Scalar) -> str:
    pairs = [(entry["key"], entry["value"]) for entry in scalar.values]
    if kinds.is_string(scalar.type.key_type) or kinds.is_large_string(scalar.type.key_type):
        return "{" + ",".join(f"{_text(key)}:{_text(value)}" for key, value in pairs) + "}"
    return "[" + ",".join(f"[{_text(key)},{_text(value)}]" for key, value in pairs) + "]"


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else _SPECIAL[str(value)]


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
