"""From a decode declaration to the codec that does it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lodestream.contracts import load_contract
from lodestream.contracts.model import Field
from lodestream.errors import DeclarationError
from lodestream.pipeline.decoders import DecodeDecl, Json, Raw
from lodestream.sources.codecs.codec import Codec, Limits
from lodestream.sources.codecs.json import JsonCodec
from lodestream.sources.codecs.raw import RawCodec
from lodestream.sources.codecs.shape import Shape, shape_of

Schema = str | Iterable[Field]


def codec_for(
    decl: DecodeDecl, schema: Schema | None = None, *, root: Path | None = None, limits: Limits | None = None
) -> Codec:
    """The codec of a declaration. `schema` (DDL or a contract's fields) serves where the declaration names none;
    paths in the declaration are looked up from `root`, the project's folder."""
    bounds = limits or Limits()
    match decl:
        case Raw():
            return RawCodec()
        case Json():
            return JsonCodec(_shape(decl.schema, schema, root), bounds)
    raise DeclarationError(f"{type(decl).__name__} cannot be decoded")


def _shape(declared: str | None, given: Schema | None, root: Path | None) -> Shape:
    if declared is not None and declared.endswith((".yaml", ".yml")):
        return shape_of(load_contract((root or Path()) / declared).fields)
    schema = declared if declared is not None else given
    if schema is None:
        raise DeclarationError(
            "the decoder has no schema", why="neither it nor its table names one", fix='Json("id bigint, at timestamp")'
        )
    return shape_of(schema)
