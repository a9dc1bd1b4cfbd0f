"""Codecs: what turns the raw bytes of Bronze into typed columns, or into a reason why not.

This is the list of those that are built in: importing one registers it. What decodes comes with Arrow, and is imported
when it is asked for: a declaration alone needs none of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lodestream.pipeline.decoders import DecoderDeclaration
from lodestream.sources.codecs.avro import Avro
from lodestream.sources.codecs.csv import Csv
from lodestream.sources.codecs.debezium import Debezium
from lodestream.sources.codecs.json import Json
from lodestream.sources.codecs.kinds import register_codec
from lodestream.sources.codecs.protobuf import Protobuf
from lodestream.sources.codecs.raw import Raw

if TYPE_CHECKING:
    from lodestream.sources.codecs.choose import Decoding, codec_for
    from lodestream.sources.codecs.codec import BrokenRow, Codec, Limits, RecordCodec, RowCodec
    from lodestream.sources.codecs.frame import decode_frame, registry_failure
    from lodestream.sources.codecs.registry import Registry
    from lodestream.sources.codecs.shape import Column, Shape, shape_of

__all__ = [
    "Avro",
    "BrokenRow",
    "Codec",
    "Column",
    "Csv",
    "Debezium",
    "DecoderDeclaration",
    "Decoding",
    "Json",
    "Limits",
    "Protobuf",
    "Raw",
    "RecordCodec",
    "Registry",
    "RowCodec",
    "Shape",
    "codec_for",
    "decode_frame",
    "register_codec",
    "registry_failure",
    "shape_of",
]

_LATER = {
    "choose": ("Decoding", "codec_for"),
    "codec": ("BrokenRow", "Codec", "Limits", "RecordCodec", "RowCodec"),
    "frame": ("decode_frame", "registry_failure"),
    "registry": ("Registry",),
    "shape": ("Column", "Shape", "shape_of"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
