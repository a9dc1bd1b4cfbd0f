"""Avro records, written in the registry's wire format."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from lodestream.sources.codecs.registry import Kind
from lodestream.sources.codecs.serialise import Serialiser
from lodestream.sources.codecs.wire import frame


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
