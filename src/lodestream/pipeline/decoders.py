"""How Silver reads the raw bytes of Bronze: declarations only, decoding is elsewhere.

A `schema` is a Spark DDL string ("id bigint, name string") or the path of a contract. So are `columns`, for formats
whose schema is their own; where neither is given, the table's contract says which columns there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lodestream.pipeline.location import caller_location, declaration_error


@dataclass(frozen=True)
class Json:
    """One JSON object per message. Without a schema, the table's contract gives it."""

    schema: str | None = None


@dataclass(frozen=True)
class Avro:
    """Avro by a writer schema (text or .avsc path), or by the registry's wire format."""

    schema: str | None = None
    registry: str | None = None
    columns: str | None = None

    def __post_init__(self) -> None:
        if not self.schema and not self.registry:
            raise declaration_error(
                caller_location(),
                "Avro needs a schema or a registry",
                why="Avro bytes cannot be read without the schema they were written with",
                fix='Avro(registry="http://host:port") or Avro(schema="trip.avsc")',
            )


@dataclass(frozen=True)
class Protobuf:
    """Protobuf by a compiled descriptor file and message name, or by the registry's wire format."""

    message: str | None = None
    descriptor: str | None = None
    registry: str | None = None
    columns: str | None = None

    def __post_init__(self) -> None:
        if not self.registry and not (self.message and self.descriptor):
            raise declaration_error(
                caller_location(),
                "Protobuf needs a registry, or a descriptor and a message",
                fix='Protobuf(message="taxi.Trip", descriptor="trip.desc")',
            )


@dataclass(frozen=True)
class Csv:
    """One CSV line per message, columns in the order of the schema."""

    schema: str | None = None
    delimiter: str = ","
    quote: str = '"'


@dataclass(frozen=True)
class Raw:
    """No decoding: the function gets the key and value bytes."""


@dataclass(frozen=True)
class Debezium:
    """A Debezium envelope around `of`: before and after images, operation, source position."""

    of: Json | Avro = field(default_factory=Json)


DecodeDecl = Json | Avro | Protobuf | Csv | Raw | Debezium
