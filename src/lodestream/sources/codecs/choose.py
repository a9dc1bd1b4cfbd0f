"""From a decode declaration to the codec that does it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from lodestream.contracts import load_contract
from lodestream.contracts.model import Field
from lodestream.errors import DeclarationError
from lodestream.pipeline.decoders import Avro, Csv, Debezium, DecodeDecl, Json, Protobuf, Raw
from lodestream.sources.codecs.avro import AvroCodec, avro_shape
from lodestream.sources.codecs.codec import Codec, Limits
from lodestream.sources.codecs.csv import CsvCodec
from lodestream.sources.codecs.debezium import DebeziumCodec
from lodestream.sources.codecs.json import JsonCodec
from lodestream.sources.codecs.protobuf import ProtobufCodec, protobuf_shape, read_descriptor
from lodestream.sources.codecs.raw import RawCodec
from lodestream.sources.codecs.shape import Shape, shape_of

Schema = str | Iterable[Field]


def codec_for(
    decl: DecodeDecl, schema: Schema | None = None, *, root: Path | None = None, limits: Limits | None = None
) -> Codec:
    """The codec of a declaration. `schema` (DDL or a contract's fields) serves where the declaration names none;
    paths in the declaration are looked up from `root`, the project's folder."""
    bounds, folder = limits or Limits(), root or Path()
    match decl:
        case Raw():
            return RawCodec()
        case Json():
            return JsonCodec(_shape(decl.schema, schema, folder), bounds)
        case Csv():
            return CsvCodec(_shape(decl.schema, schema, folder), bounds, decl.delimiter, decl.quote)
        case Avro():
            return _avro(decl, schema, folder, bounds)
        case Protobuf():
            return _protobuf(decl, schema, folder, bounds)
        case Debezium():
            inner = codec_for(decl.of, schema, root=root, limits=bounds)
            if isinstance(inner, JsonCodec | AvroCodec):
                return DebeziumCodec(inner, bounds)
    raise DeclarationError(f"{type(decl).__name__} cannot be decoded")


def _shape(declared: str | None, given: Schema | None, folder: Path) -> Shape:
    """What the decoder declares, else what its table does; fields that the table masks stay hidden either way."""
    found = _stated(declared, given, folder)
    return found if given is None or isinstance(given, str) else found.hiding(given)


def _stated(declared: str | None, given: Schema | None, folder: Path) -> Shape:
    if declared is not None and declared.endswith((".yaml", ".yml")):
        return shape_of(load_contract(folder / declared).fields)
    schema = declared if declared is not None else given
    if schema is None:
        raise DeclarationError(
            "the decoder has no schema",
            why="neither it nor its table names one",
            fix='give it one, as in Json("id bigint, at timestamp"), or give its table a contract',
        )
    return shape_of(schema)


def _need(module: str, what: str) -> None:
    if find_spec(module) is None:
        raise DeclarationError(
            f"{what} needs a package that is not installed",
            why=f"the module {module} is not there",
            fix="pip install 'lodestream[registry]'",
        )


def _avro(decl: Avro, schema: Schema | None, folder: Path, limits: Limits) -> AvroCodec:
    """With a registry, the declared schema is the reader's: every writer's schema is resolved to it."""
    _need("fastavro", "Avro")
    text = _avro_text(decl.schema, folder) if decl.schema else None
    own = schema is None and decl.columns is None and text is not None
    shape = avro_shape(text or "") if own else _shape(decl.columns, schema, folder)
    if decl.registry:
        return AvroCodec(shape, limits, reader=text, registry=decl.registry)
    return AvroCodec(shape, limits, writer=text)


def _avro_text(schema: str, folder: Path) -> str:
    if schema.lstrip().startswith(("{", "[")):
        return schema
    try:
        return (folder / schema).read_text()
    except OSError as error:
        raise DeclarationError(f"the Avro schema {schema} cannot be read", why=str(error)) from None


def _protobuf(decl: Protobuf, schema: Schema | None, folder: Path, limits: Limits) -> ProtobufCodec:
    _need("google.protobuf", "Protobuf")
    descriptor = read_descriptor(folder / decl.descriptor) if decl.descriptor else None
    own = schema is None and decl.columns is None and descriptor is not None and decl.message is not None
    shape = protobuf_shape(descriptor or b"", decl.message or "") if own else _shape(decl.columns, schema, folder)
    return ProtobufCodec(shape, limits, decl.message, descriptor, decl.registry)
