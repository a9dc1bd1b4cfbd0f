"""The producer's side: a schema checked and registered, and records written in the registry's wire format."""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from lodestream.errors import ContractError
from lodestream.sources.codecs import proto_files
from lodestream.sources.codecs.registry import Kind, RegisteredSchema, Registry
from lodestream.sources.codecs.wire import frame


class Serialiser(ABC):
    """Records to messages under one registered schema."""

    kind: Kind

    def __init__(self, registry: str, subject: str, schema: str) -> None:
        self.schema_id = register(Registry(registry), subject, RegisteredSchema(self.kind, schema))

    def serialise(self, records: Iterable[Mapping[str, Any]]) -> list[bytes]:
        """One message per record. Raises ValueError for a record that does not fit the schema."""
        return [self._one(record) for record in records]

    @abstractmethod
    def _one(self, record: Mapping[str, Any]) -> bytes: ...


class AvroSerialiser(Serialiser):
    """Avro records; the schema is Avro's JSON text."""

    kind: Kind = "AVRO"

    def __init__(self, registry: str, subject: str, schema: str) -> None:
        from fastavro import parse_schema

        super().__init__(registry, subject, schema)
        self._schema = parse_schema(json.loads(schema))

    def _one(self, record: Mapping[str, Any]) -> bytes:
        from fastavro import schemaless_writer

        out = io.BytesIO()
        schemaless_writer(out, self._schema, dict(record))
        return frame(self.schema_id, out.getvalue())


class ProtobufSerialiser(Serialiser):
    """Messages of one type of a .proto source; fields that are None stay unset."""

    kind: Kind = "PROTOBUF"

    def __init__(self, registry: str, subject: str, schema: str, message: str) -> None:
        from google.protobuf.message_factory import GetMessageClass

        super().__init__(registry, subject, schema)
        descriptor = proto_files.compile_sources({"schema.proto": schema}, "schema.proto")
        found = proto_files.message_type(descriptor, message)
        self._indexes = proto_files.indexes_of(found)
        self._class = GetMessageClass(found)

    def _one(self, record: Mapping[str, Any]) -> bytes:
        message = self._class(**{name: value for name, value in record.items() if value is not None})
        return frame(self.schema_id, message.SerializeToString(), self._indexes)


def register(registry: Registry, subject: str, schema: RegisteredSchema) -> int:
    """The schema's id. A schema that breaks the subject's readers is refused, with the registry's explanation."""
    found = registry.check(subject, schema)
    if not found.ok:
        raise ContractError(
            f"the new schema of {subject} is not compatible with its latest version",
            why="; ".join(found.why) or "the registry gives no reason",
            fix="add fields with defaults and keep the others, or register it under a new subject",
        )
    return registry.register(subject, schema)
