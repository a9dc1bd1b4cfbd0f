"""Bytes that nobody decodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lodestream.pipeline.decoders import DecoderDeclaration
from lodestream.sources.codecs.kinds import register_codec

if TYPE_CHECKING:
    from lodestream.sources.codecs.choose import Decoding
    from lodestream.sources.codecs.codec import Codec

__all__ = ["Raw"]


@dataclass(frozen=True)
class Raw(DecoderDeclaration):
    """No decoding: the function gets the key and value bytes."""

    takes_json = True


def _make(_decl: Raw, _decoding: Decoding) -> Codec:
    from lodestream.sources.codecs.raw.codec import RawCodec

    return RawCodec()


register_codec(Raw, _make)
