"""What an Avro message would cost, counted without building it.

The reader recurses without a guard and believes the counts it reads, so a few bytes could crash it or fill the memory.
Messages that could do so are walked here first.
"""

from __future__ import annotations

from typing import Any

from lodestream.sources.codecs.codec import BrokenRow, Limits
from lodestream.sources.codecs.wire import read_varint

_FIXED = {"null": 0, "boolean": 1, "float": 4, "double": 8}
Named = dict[str, Any]


def is_risky(schema: Any) -> bool:
    """Whether the schema can nest without end or repeat something that takes no bytes."""
    named: Named = {}
    return _risky(schema, named, ())


def _risky(schema: Any, named: Named, above: tuple[str, ...]) -> bool:
    if isinstance(schema, str):
        return schema in above
    if isinstance(schema, list):
        return any(_risky(branch, named, above) for branch in schema)
    kind = schema["type"]
    if kind in ("record", "error"):
        inside = (*above, schema["name"])
        named[schema["name"]] = schema
        return any(_risky(field["type"], named, inside) for field in schema["fields"])
    if kind in ("array", "map"):
        items = schema["items"] if kind == "array" else schema["values"]
        return (kind == "array" and _weightless(items, named)) or _risky(items, named, above)
    return _risky(kind, named, above) if isinstance(kind, dict | list) else False


def _weightless(schema: Any, named: Named) -> bool:
    if isinstance(schema, str):
        return schema == "null" or (schema in named and _weightless(named[schema], named))
    if isinstance(schema, list):
        return False
    if schema["type"] == "record":
        return all(_weightless(field["type"], named) for field in schema["fields"])
    return bool(schema["type"] == "null" or (schema["type"] == "fixed" and schema["size"] == 0))


class Scale:
    """Walks messages of one schema and refuses those beyond the limits."""

    def __init__(self, schema: Any, limits: Limits) -> None:
        self._schema = schema
        self._limits = limits
        self._named: Named = {}
        _collect(schema, self._named)

    def weigh(self, message: bytes) -> None:
        self._items = 0
        self._walk(self._schema, message, 0, 0)

    def _walk(self, schema: Any, data: bytes, at: int, depth: int) -> int:
        if depth > self._limits.depth:
            raise BrokenRow(f"nested deeper than {self._limits.depth}")
        if isinstance(schema, str):
            return self._plain(schema, data, at, depth)
        if isinstance(schema, list):
            return self._branch(schema, data, at, depth)
        match schema["type"]:
            case "record" | "error":
                for field in schema["fields"]:
                    at = self._walk(field["type"], data, at, depth + 1)
                return at
            case "array":
                return self._blocks(data, at, lambda place: self._walk(schema["items"], data, place, depth + 1))
            case "map":
                return self._blocks(data, at, lambda place: self._entry(schema["values"], data, place, depth + 1))
            case "fixed":
                return _ahead(data, at, int(schema["size"]))
            case "enum":
                return read_varint(data, at)[1]
        return self._walk(schema["type"], data, at, depth)

    def _plain(self, name: str, data: bytes, at: int, depth: int) -> int:
        if name in self._named:
            return self._walk(self._named[name], data, at, depth)
        if name in _FIXED:
            return _ahead(data, at, _FIXED[name])
        number, at = read_varint(data, at)
        return at if name in ("int", "long") else _ahead(data, at, _signed(number))

    def _branch(self, branches: list[Any], data: bytes, at: int, depth: int) -> int:
        number, at = read_varint(data, at)
        if not 0 <= _signed(number) < len(branches):
            raise BrokenRow(f"union branch {_signed(number)} of {len(branches)}")
        return self._walk(branches[_signed(number)], data, at, depth + 1)

    def _blocks(self, data: bytes, at: int, one: Any) -> int:
        while True:
            number, at = read_varint(data, at)
            count = _signed(number)
            if count == 0:
                return at
            if count < 0:
                count, at = -count, read_varint(data, at)[1]
            self._items += count
            if self._items > self._limits.items:
                raise BrokenRow(f"more than {self._limits.items:,} items")
            for _ in range(count):
                at = one(at)

    def _entry(self, values: Any, data: bytes, at: int, depth: int) -> int:
        return self._walk(values, data, self._plain("string", data, at, depth), depth)


def _collect(schema: Any, named: Named) -> None:
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, named)
    elif isinstance(schema, dict):
        if "name" in schema:
            named[schema["name"]] = schema
        for inside in (schema.get("type"), schema.get("items"), schema.get("values"), *schema.get("fields", ())):
            if isinstance(inside, dict | list):
                _collect(inside, named)


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _ahead(data: bytes, at: int, size: int) -> int:
    if size < 0 or at + size > len(data):
        raise BrokenRow(f"truncated at byte {len(data)}")
    return at + size
