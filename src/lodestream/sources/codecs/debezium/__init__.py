"""Debezium's envelope around another format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lodestream.errors import DeclarationError
from lodestream.pipeline.decoders import TOMBSTONE, TRUNCATE, DecoderDeclaration
from lodestream.sources.codecs.json import Json
from lodestream.sources.codecs.kinds import register_codec

if TYPE_CHECKING:
    from lodestream.sources.codecs.choose import Decoding
    from lodestream.sources.codecs.codec import Codec

__all__ = ["Debezium"]


@dataclass(frozen=True)
class Debezium(DecoderDeclaration):
    """A Debezium envelope around `of`: before and after images, operation, source position."""

    of: DecoderDeclaration = field(default_factory=Json)
    format = "debezium"
    notice = f"CASE __op WHEN 'tombstone' THEN '{TOMBSTONE}' WHEN 't' THEN '{TRUNCATE}' END"
    # A delete often brings no more than its key.
    bare = "__op IN ('d', 't', 'm', 'tombstone')"
    takes_json = True

    @property
    def schema_text(self) -> str | None:
        return self.of.schema_text


def _make(decl: Debezium, decoding: Decoding) -> Codec:
    from lodestream.sources.codecs.codec import RecordCodec
    from lodestream.sources.codecs.debezium.codec import DebeziumCodec

    inner = decoding.codec(decl.of)
    if not isinstance(inner, RecordCodec):
        raise DeclarationError(
            f"{type(decl.of).__name__} cannot be inside of {type(decl).__name__}",
            why="an envelope is a record with records in it",
            fix="declare the format that the connector writes: Json() or Avro(...)",
        )
    return DebeziumCodec(inner, decoding.limits)


register_codec(Debezium, _make)
