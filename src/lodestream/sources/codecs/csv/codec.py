"""CSV, one line per message, columns in the order of the schema."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field, replace
from typing import Any

from lodestream.contracts.types import Type
from lodestream.sources.codecs.codec import BrokenRow, Limits, RowCodec
from lodestream.sources.codecs.exact import read_row
from lodestream.sources.codecs.scalars import Real
from lodestream.sources.codecs.shape import Column, Shape

_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


@dataclass(frozen=True)
class CsvCodec(RowCodec):
    """An empty field is null, quoted or not: CSV cannot say which of the two was meant."""

    shape: Shape
    limits: Limits = field(default_factory=Limits)
    delimiter: str = ","
    quote: str = '"'
    format = "csv"

    def row(self, value: bytes) -> dict[str, Any]:
        fields = self._fields(value)
        columns = self.shape.columns
        if len(fields) != len(columns):
            raise BrokenRow(f"{len(fields)} fields, the schema has {len(columns)}")
        event = {column.name: _given(text, column) for text, column in zip(fields, columns, strict=True)}
        return read_row(event, Shape(tuple(_by_place(column) for column in columns)))

    def _fields(self, value: bytes) -> list[str]:
        try:
            text = value.decode()
        except UnicodeDecodeError as error:
            raise BrokenRow(f"not UTF-8 at byte {error.start}") from None
        if text.count(self.delimiter) > self.limits.items:  # a field of no text takes one byte, and a list's place many
            raise BrokenRow(f"more than {self.limits.items:,} items")
        lines = [text.removesuffix("\n").removesuffix("\r")]
        try:
            csv.field_size_limit(self.limits.value_bytes)
            rows = list(csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote, strict=True))
        except csv.Error as error:
            raise BrokenRow(f"malformed ({error})") from None
        return rows[0] if rows else [""]


def _by_place(column: Column) -> Column:
    return replace(column, sources=(column.name,), any_case=False)


def _given(text: str, column: Column) -> Any:
    """The text as a value that the exact rules understand: only what a type itself would accept is converted."""
    if column.scalar_text or column.type.name in ("string", "varchar", "char"):
        return text or None
    if not text:
        return None
    return _value(text, column.type)


def _value(text: str, kind: Type) -> Any:
    if kind.name in _NUMERIC and _WHOLE.fullmatch(text):
        return int(text)
    if kind.name in _NUMERIC and _REAL.fullmatch(text):
        return Real(text)
    if kind.name == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return text
