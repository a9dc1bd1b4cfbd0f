"""Protobuf messages, written in the registry's wire format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lodestream.sources.codecs.protobuf import files as proto_files
from lodestream.sources.codecs.registry import Kind
from lodestream.sources.codecs.serialise import Serialiser
from lodestream.sources.codecs.wire import frame


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
