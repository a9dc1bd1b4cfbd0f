"""Avro, by a known writer schema or by the registry's wire format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lodestream.errors import DeclarationError
from lodestream.pipeline.decoders import DecoderDeclaration
from lodestream.pipeline.location import caller_location, declaration_error
from lodestream.sources.codecs.kinds import register_codec

if TYPE_CHECKING:
    from lodestream.sources.codecs.choose import Decoding
    from lodestream.sources.codecs.codec import Codec

__all__ = ["Avro"]


@dataclass(frozen=True)
class Avro(DecoderDeclaration):
    """Avro by a writer schema (text or .avsc path), or by the registry's wire format."""

    schema: str | None = None
    registry: str | None = None
    columns: str | None = None
    format = "avro"

    def __post_init__(self) -> None:
        if not self.schema and not self.registry:
            raise declaration_error(
                caller_location(),
                "Avro needs a schema or a registry",
                why="Avro bytes cannot be read without the schema they were written with",
                fix='Avro(registry="http://host:port") or Avro(schema="trip.avsc")',
            )

    @property
    def schema_text(self) -> str | None:
        return self.columns


def _make(decl: Avro, decoding: Decoding) -> Codec:
    """With a registry, the declared schema is the reader's: every writer's schema is resolved to it."""
    decoding.need("fastavro", "Avro")
    from lodestream.sources.codecs.avro.codec import AvroCodec, avro_shape

    text = _text(decl.schema, decoding.folder) if decl.schema else None
    own = decoding.schema is None and decl.columns is None and text is not None
    shape = avro_shape(text or "") if own else decoding.shape(decl.columns)
    if decl.registry:
        return AvroCodec(shape, decoding.limits, reader=text, registry=decl.registry)
    return AvroCodec(shape, decoding.limits, writer=text)


def _text(schema: str, folder: Path) -> str:
    if schema.lstrip().startswith(("{", "[")):
        return schema
    try:
        return (folder / schema).read_text()
    except OSError as error:
        raise DeclarationError(f"the Avro schema {schema} cannot be read", why=str(error)) from None


register_codec(Avro, _make)
