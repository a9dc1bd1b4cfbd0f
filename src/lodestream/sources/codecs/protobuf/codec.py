"""Protobuf, by a compiled descriptor or by the registry's wire format."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lodestream.contracts.types import Type, array, mapping, struct
from lodestream.errors import DeclarationError
from lodestream.sources.codecs.codec import BrokenRow, Limits, RowCodec
from lodestream.sources.codecs.exact import read_row
from lodestream.sources.codecs.protobuf import files as proto_files
from lodestream.sources.codecs.protobuf.values import Walk
from lodestream.sources.codecs.protobuf.weight import weigh
from lodestream.sources.codecs.registry import RegisteredSchema, Registry
from lodestream.sources.codecs.schemas import SchemaCache
from lodestream.sources.codecs.shape import Column, Shape
from lodestream.sources.codecs.wire import split, split_indexes

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

_KINDS = {
    "TYPE_DOUBLE": "double", "TYPE_FLOAT": "float", "TYPE_BOOL": "boolean", "TYPE_STRING": "string",
    "TYPE_BYTES": "binary",
    "TYPE_ENUM": "string", "TYPE_INT32": "int", "TYPE_SINT32": "int", "TYPE_SFIXED32": "int", "TYPE_UINT32": "bigint",
    "TYPE_FIXED32": "bigint", "TYPE_INT64": "bigint", "TYPE_SINT64": "bigint", "TYPE_SFIXED64": "bigint",
}  # fmt: skip


@dataclass(frozen=True)
class ProtobufCodec(RowCodec):
    """One message per value. `descriptor` is a serialised FileDescriptorSet that holds the type `message`."""

    shape: Shape
    limits: Limits = field(default_factory=Limits)
    message: str | None = None
    descriptor: bytes | None = None
    registry: str | None = None
    format = "protobuf"
    empty_is_a_message = True  # all fields at their defaults take no bytes

    def row(self, value: bytes) -> dict[str, Any]:
        kind, body = self._typed(value)
        return read_row(read_message(kind, body, self.limits), self.shape)

    def _typed(self, value: bytes) -> tuple[Descriptor, bytes]:
        if self.registry is None:
            return proto_files.message_type(self.descriptor or b"", self.message or ""), value
        schema_id, rest = split(value)
        indexes, body = split_indexes(rest)
        return _at(_schemas(self.registry).get(schema_id), indexes), body


def read_message(kind: Descriptor, body: bytes, limits: Limits) -> dict[str, Any]:
    """The message as plain values, by field name."""
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass

    weigh(kind, body, limits)
    message = GetMessageClass(kind)()
    try:
        message.ParseFromString(body)
    except DecodeError:
        raise BrokenRow(f"not a {kind.full_name} ({len(body)} bytes, truncated or malformed)") from None
    return Walk(limits).message(message)


def _at(file: FileDescriptor, indexes: tuple[int, ...]) -> Descriptor:
    """The type at this place: the third type inside the first one is (0, 2)."""
    kinds: list[Descriptor] = list(file.message_types_by_name.values())
    for index in indexes[:-1]:
        kinds = list(_pick(kinds, index, indexes).nested_types)
    return _pick(kinds, indexes[-1], indexes)


def _pick(kinds: list[Descriptor], index: int, indexes: tuple[int, ...]) -> Descriptor:
    if not 0 <= index < len(kinds):
        raise BrokenRow(f"message index {list(indexes)} is not in its schema")
    return kinds[index]


@cache
def _schemas(url: str) -> SchemaCache[Any]:
    return SchemaCache(url, _file)


def _file(registry: Registry, schema: RegisteredSchema) -> Any:
    if schema.kind != "PROTOBUF":
        raise ValueError(f"it is an {schema.kind} schema" if schema.kind == "AVRO" else f"it is a {schema.kind} schema")
    sources = {"schema.proto": schema.text}
    _add_imports(registry, schema, sources, depth=0)
    return proto_files.last_file(proto_files.compile_sources(sources, "schema.proto"))


def _add_imports(registry: Registry, schema: RegisteredSchema, sources: dict[str, str], depth: int) -> None:
    if depth > 20:
        raise ValueError("its imports go in a circle")
    for reference in schema.references:
        found = registry.by_version(reference.subject, reference.version)
        sources[reference.name] = found.text
        _add_imports(registry, found, sources, depth + 1)


def read_descriptor(path: Path) -> bytes:
    """A compiled descriptor set (`protoc --include_imports -o`), or a .proto file, which is compiled here."""
    try:
        if path.suffix == ".proto":
            return proto_files.compile_sources({path.name: path.read_text()}, path.name, path.parent)
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise DeclarationError(f"the Protobuf descriptor {path} cannot be read", why=str(error)) from None


def protobuf_shape(descriptor: bytes, message: str) -> Shape:
    """The columns of a message type."""
    try:
        kind = _struct(proto_files.message_type(descriptor, message), ())
    except (KeyError, ValueError, TypeError) as error:
        raise DeclarationError(
            f"the Protobuf message {message} cannot be decoded to columns",
            why=str(error),
            fix="name a message of the descriptor, compiled with --include_imports",
        ) from None
    return Shape(tuple(Column(name, member, (name,)) for name, member in kind.members))


def _struct(kind: Descriptor, above: tuple[str, ...]) -> Type:
    if kind.full_name in above:
        raise ValueError(f"{kind.full_name} contains itself")
    inside = (*above, kind.full_name)
    return struct(tuple((found.name, _field(found, inside)) for found in kind.fields))


def _field(found: FieldDescriptor, above: tuple[str, ...]) -> Type:
    inner = found.message_type
    if inner is not None and inner.GetOptions().map_entry:
        key, value = inner.fields_by_name["key"], inner.fields_by_name["value"]
        return mapping(_one(key, above), _one(value, above))
    one = _one(found, above)
    return array(one) if found.is_repeated else one


def _one(found: FieldDescriptor, above: tuple[str, ...]) -> Type:
    if found.message_type is None:
        return proto_files.scalar_type(found, _KINDS)
    if found.message_type.full_name == "google.protobuf.Timestamp":
        return Type("timestamp")
    if found.message_type.full_name in proto_files.WRAPPERS:
        return _one(found.message_type.fields_by_name["value"], above)
    return _struct(found.message_type, above)
