"""Codecs: what turns the raw bytes of Bronze into typed columns, or into a reason why not."""

from lodestream.sources.codecs.choose import codec_for
from lodestream.sources.codecs.codec import BrokenRow, Codec, Limits
from lodestream.sources.codecs.frame import decode_frame
from lodestream.sources.codecs.json import JsonCodec
from lodestream.sources.codecs.raw import RawCodec
from lodestream.sources.codecs.shape import Column, Shape, shape_of

__all__ = [
    "BrokenRow",
    "Codec",
    "Column",
    "JsonCodec",
    "Limits",
    "RawCodec",
    "Shape",
    "codec_for",
    "decode_frame",
    "shape_of",
]
