"""Avro, by a known writer schema or by the registry's wire format, evolved to the reader's."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from lodestream.contracts.types import Type, array, decimal, mapping, struct
from lodestream.errors import DeclarationError
from lodestream.sources.codecs.avro.weight import Scale, is_risky
from lodestream.sources.codecs.codec import BrokenRow, Limits, RecordCodec
from lodestream.sources.codecs.exact import read_row
from lodestream.sources.codecs.registry import RegisteredSchema, Registry
from lodestream.sources.codecs.schemas import SchemaCache
from lodestream.sources.codecs.shape import Column, Shape
from lodestream.sources.codecs.wire import split

_PLAIN = {
    "boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double",
    "string": "string", "bytes": "binary", "enum": "string", "fixed": "binary",
}  # fmt: skip
_LOGICAL = {
    "date": "date", "timestamp-millis": "timestamp", "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz", "local-timestamp-micros": "timestamp_ntz", "uuid": "string",
}  # fmt: skip


@dataclass(frozen=True)
class AvroCodec(RecordCodec):
    """One record per message. The writer's schema is given, or named by the id in front of each message."""

    shape: Shape
    limits: Limits = field(default_factory=Limits)
    writer: str | None = None
    reader: str | None = None
    registry: str | None = None
    format = "avro"

    def row(self, value: bytes) -> dict[str, Any]:
        return read_row(self.record(value), self.shape)

    def record(self, value: bytes) -> dict[str, Any]:
        """The record as the writer meant it, in the reader's schema where one is given."""
        if self.registry is None:
            return _read(_written_by(self.writer or "", self.limits), self.reader, value)
        schema_id, message = split(value)
        return _read(_schemas(self.registry, self.limits).get(schema_id), self.reader, message)


@dataclass(frozen=True)
class _Writer:
    schema: Any
    scale: Scale
    risky: bool
    most_bytes: int


def _read(writer: _Writer, reader: str | None, message: bytes) -> dict[str, Any]:
    from fastavro import schemaless_reader
    from fastavro.read import SchemaResolutionError

    if writer.risky or len(message) > writer.most_bytes:
        writer.scale.weigh(message)
    stream = io.BytesIO(message)
    try:
        record = schemaless_reader(stream, writer.schema, _parsed(reader) if reader else None)
    except SchemaResolutionError as error:
        raise BrokenRow(f"the writer's schema does not fit the reader's: {str(error)[:120]}") from None
    except EOFError:
        raise BrokenRow(f"truncated at byte {len(message)}") from None
    except Exception as error:
        # The reader raises what its parts raise: IndexError, KeyError, OverflowError, UnicodeDecodeError and others.
        raise BrokenRow(f"malformed near byte {stream.tell()} ({type(error).__name__})") from None
    if stream.tell() != len(message):
        raise BrokenRow(f"{len(message) - stream.tell()} bytes left over after the record")
    if not isinstance(record, dict):
        raise BrokenRow("not a record")
    return record


@cache
def _parsed(text: str) -> Any:
    from fastavro import parse_schema

    return parse_schema(json.loads(text))


@cache
def _written_by(text: str, limits: Limits) -> _Writer:
    # Twice: the reader wants its own parsed form, the scale the schema as it was written, named types in place.
    plain = json.loads(text)
    return _Writer(_parsed(text), Scale(_expanded(plain), limits), is_risky(_expanded(plain)), limits.items)


def _expanded(schema: Any) -> Any:
    """With full names throughout, as `parse_schema` writes them."""
    from fastavro.schema import parse_schema

    return parse_schema(schema, _write_hint=False, _force=True)


@cache
def _schemas(url: str, limits: Limits) -> SchemaCache[_Writer]:
    return SchemaCache(url, lambda registry, schema: _written_by(_with_references(registry, schema), limits))


def _with_references(registry: Registry, schema: RegisteredSchema) -> str:
    """One schema text, with what it imports written in where it is first named."""
    if schema.kind != "AVRO":
        raise ValueError(f"it is a {schema.kind} schema")
    if not schema.references:
        return schema.text
    imported: dict[str, Any] = {}
    _collect_imports(registry, schema, imported, depth=0)
    return json.dumps(_inline(json.loads(schema.text), imported))


def _collect_imports(registry: Registry, schema: RegisteredSchema, imported: dict[str, Any], depth: int) -> None:
    if depth > 20:
        raise ValueError("its imports go in a circle")
    for reference in schema.references:
        found = registry.by_version(reference.subject, reference.version)
        imported.setdefault(reference.name, json.loads(found.text))
        _collect_imports(registry, found, imported, depth + 1)


def _inline(schema: Any, imported: dict[str, Any]) -> Any:
    """Each imported type in place of the first mention of its name; later mentions stay names."""
    if isinstance(schema, str):
        return _inline(imported.pop(schema), imported) if schema in imported else schema
    if isinstance(schema, list):
        return [_inline(branch, imported) for branch in schema]
    found = dict(schema)
    for key in ("type", "items", "values"):
        if key in found:
            found[key] = _inline(found[key], imported)
    if "fields" in found:
        found["fields"] = [_inline(member, imported) for member in found["fields"]]
    return found


def avro_shape(text: str) -> Shape:
    """The columns of an Avro record schema."""
    try:
        schema = _expanded(json.loads(text))
        kind = _type(schema, {})
    except Exception as error:
        raise DeclarationError("the Avro schema cannot be read", why=str(error), fix="check the .avsc file") from None
    if kind.name != "struct":
        raise DeclarationError("the Avro schema is not a record", fix="wrap the value in a record")
    return Shape(tuple(Column(name, member, (name,)) for name, member in kind.members))


def _type(schema: Any, named: dict[str, Any]) -> Type:
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        if len(branches) != 1:
            raise ValueError(f"a union of {len(branches)} types has no column type")
        return _type(branches[0], named)
    if isinstance(schema, str):
        return _type(named[schema], named) if schema in named else Type(_PLAIN[schema])
    if "name" in schema and schema["type"] in ("record", "enum", "fixed"):
        named[schema["name"]] = schema
    logical = schema.get("logicalType")
    if logical == "decimal":
        return decimal(int(schema["precision"]), int(schema.get("scale", 0)))
    if logical in _LOGICAL:
        return Type(_LOGICAL[logical])
    match schema["type"]:
        case "record":
            return struct(tuple((member["name"], _type(member["type"], named)) for member in schema["fields"]))
        case "array":
            return array(_type(schema["items"], named))
        case "map":
            return mapping(Type("string"), _type(schema["values"], named))
    return _type(schema["type"], named) if not isinstance(schema["type"], str) else Type(_PLAIN[schema["type"]])
