"""Protobuf, by a compiled descriptor or by the registry's wire format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lodestream.pipeline.decoders import DecoderDeclaration
from lodestream.pipeline.location import caller_location, declaration_error
from lodestream.sources.codecs.kinds import register_codec

if TYPE_CHECKING:
    from lodestream.sources.codecs.choose import Decoding
    from lodestream.sources.codecs.codec import Codec

__all__ = ["Protobuf"]


@dataclass(frozen=True)
class Protobuf(DecoderDeclaration):
    """Protobuf by a compiled descriptor file and message name, or by the registry's wire format."""

    message: str | None = None
    descriptor: str | None = None
    registry: str | None = None
    columns: str | None = None
    format = "protobuf"

    def __post_init__(self) -> None:
        if not self.registry and not (self.message and self.descriptor):
            raise declaration_error(
                caller_location(),
                "Protobuf needs a registry, or a descriptor and a message",
                fix='Protobuf(message="taxi.Trip", descriptor="trip.desc")',
            )

    @property
    def schema_text(self) -> str | None:
        return self.columns


def _make(decl: Protobuf, decoding: Decoding) -> Codec:
    decoding.need("google.protobuf", "Protobuf")
    from lodestream.sources.codecs.protobuf.codec import ProtobufCodec, protobuf_shape, read_descriptor

    descriptor = read_descriptor(decoding.folder / decl.descriptor) if decl.descriptor else None
    own = decoding.schema is None and decl.columns is None and descriptor is not None and decl.message is not None
    shape = protobuf_shape(descriptor or b"", decl.message or "") if own else decoding.shape(decl.columns)
    return ProtobufCodec(shape, decoding.limits, decl.message, descriptor, decl.registry)


register_codec(Protobuf, _make)
