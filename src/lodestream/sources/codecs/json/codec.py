"""JSON, one object per message: strict where JSON is loose, so that a value is either what was declared or a reason."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lodestream.sources.codecs.codec import BrokenRow, Limits, RecordCodec
from lodestream.sources.codecs.exact import Repeated, read_row
from lodestream.sources.codecs.scalars import Real
from lodestream.sources.codecs.shape import Shape

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_LONGEST_INT = 40


@dataclass(frozen=True)
class JsonCodec(RecordCodec):
    """Reads the declared fields of a JSON object; others are ignored.

    A present value that does not fit its type is a reason, as is a declared name given twice or in another case.
    """

    shape: Shape
    limits: Limits = field(default_factory=Limits)
    format = "json"
    json_objects = True

    def row(self, value: bytes) -> dict[str, Any]:
        return read_row(self.record(value), self.shape)

    def record(self, value: bytes) -> dict[str, Any]:
        return parse_object(value, self.limits)

    def in_jvm(self, spark: SparkSession, value: str) -> Column | None:
        from lodestream.sources.codecs import jvm_json

        return jvm_json.json_column(spark, self, value) if jvm_json.runs_here(spark) else None


def parse_object(value: bytes, limits: Limits) -> dict[str, Any]:
    """The object that the bytes spell. Numbers that are not small integers stay text (`Real`)."""
    text = _text(value)
    _check_limits(text, limits)
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_float=Real, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise BrokenRow(f"malformed at byte {len(text[: error.pos].encode())}") from None
    except RecursionError:
        raise BrokenRow(f"nested deeper than {limits.depth}") from None
    if not isinstance(found, dict):
        raise BrokenRow("not an object")
    return found


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise BrokenRow(f"not UTF-8 at byte {error.start}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                found[name] = Repeated
            seen.add(name)
    return found


def _integer(digits: str) -> int | Real:
    return int(digits) if len(digits) <= _LONGEST_INT else Real(digits)


def _check_limits(text: str, limits: Limits) -> None:
    """Counted only where a limit could be passed at all: few texts are that long or have that many brackets."""
    if len(text) <= limits.items and text.count("[") + text.count("{") <= limits.depth:
        return
    depth, quoted, escaped, items = 0, False, False, 0
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
            items += 1
        elif character in "]}":
            depth -= 1
        elif character == ",":
            items += 1
        if depth > limits.depth:
            raise BrokenRow(f"nested deeper than {limits.depth}")
        if items > limits.items:
            raise BrokenRow(f"more than {limits.items:,} items")
