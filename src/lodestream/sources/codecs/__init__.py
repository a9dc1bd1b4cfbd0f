"""Codecs: what turns the raw bytes of Bronze into typed columns, or into a reason why not."""

from lodestream.sources.codecs.avro import AvroCodec
from lodestream.sources.codecs.choose import codec_for
from lodestream.sources.codecs.codec import BrokenRow, Codec, Limits
from lodestream.sources.codecs.csv import CsvCodec
from lodestream.sources.codecs.debezium import DebeziumCodec
from lodestream.sources.codecs.frame import decode_frame, registry_failure
from lodestream.sources.codecs.json import JsonCodec
from lodestream.sources.codecs.jvm_json import warm_up
from lodestream.sources.codecs.protobuf import ProtobufCodec
from lodestream.sources.codecs.raw import RawCodec
from lodestream.sources.codecs.registry import Registry
from lodestream.sources.codecs.serialise import AvroSerialiser, ProtobufSerialiser
from lodestream.sources.codecs.shape import Column, Shape, shape_of

__all__ = [
    "AvroCodec",
    "AvroSerialiser",
    "BrokenRow",
    "Codec",
    "Column",
    "CsvCodec",
    "DebeziumCodec",
    "JsonCodec",
    "Limits",
    "ProtobufCodec",
    "ProtobufSerialiser",
    "RawCodec",
    "Registry",
    "Shape",
    "codec_for",
    "decode_frame",
    "registry_failure",
    "shape_of",
    "warm_up",
]
