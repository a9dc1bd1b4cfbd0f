"""Arrow rows as Python values, for every value that a table can hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa


def python_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Python's dates end at the years 1 and 9999: one beyond is the text that Arrow has for it."""
    names = batch.schema.names
    for values in zip(*(_values(column) for column in batch.columns), strict=True):
        yield dict(zip(names, values, strict=True))


def _values(column: pa.Array) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return [_value(one) for one in column]


def _value(one: pa.Scalar) -> Any:
    try:
        return one.as_py()
    except (OverflowError, ValueError):
        pass
    kind = one.type
    if pa.types.is_map(kind):
        return [(_value(entry["key"]), _value(entry["value"])) for entry in one.values]
    if pa.types.is_struct(kind):
        return {field.name: _value(one[field.name]) for field in kind}
    if pa.types.is_nested(kind):
        return [_value(item) for item in one.values]
    return one.cast(pa.string()).as_py()
