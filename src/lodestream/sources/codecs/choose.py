"""From a decode declaration to the codec that does it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from lodestream.contracts import load_contract
from lodestream.contracts.model import Field
from lodestream.errors import DeclarationError
from lodestream.pipeline.decoders import DecoderDeclaration
from lodestream.sources.codecs.codec import Codec, Limits
from lodestream.sources.codecs.kinds import codec_kind_of
from lodestream.sources.codecs.shape import Shape, shape_of

Schema = str | Iterable[Field]


@dataclass(frozen=True, slots=True)
class Decoding:
    """What a codec is made with: the columns of its table (DDL or a contract's fields), the folder that paths in the
    declaration are looked up from, and what a message may cost."""

    schema: Schema | None = None
    folder: Path = field(default_factory=Path)
    limits: Limits = field(default_factory=Limits)

    def shape(self, declared: str | None) -> Shape:
        """What the decoder declares, else what its table does; fields that the table masks stay hidden either way."""
        found = self._stated(declared)
        return found if self.schema is None or isinstance(self.schema, str) else found.hiding(self.schema)

    def codec(self, decl: DecoderDeclaration) -> Codec:
        """The codec of a declaration, such as one inside of an envelope."""
        return codec_kind_of(decl).make(decl, self)

    def need(self, module: str, what: str) -> None:
        """Raise when a package is not installed that not every project needs."""
        if find_spec(module) is None:
            raise DeclarationError(
                f"{what} needs a package that is not installed",
                why=f"the module {module} is not there",
                fix="pip install 'lodestream[registry]'",
            )

    def _stated(self, declared: str | None) -> Shape:
        if declared is not None and declared.endswith((".yaml", ".yml")):
            return shape_of(load_contract(self.folder / declared).fields)
        schema = declared if declared is not None else self.schema
        if schema is None:
            raise DeclarationError(
                "the decoder has no schema",
                why="neither it nor its table names one",
                fix='give it one, as in Json("id bigint, at timestamp"), or give its table a contract',
            )
        return shape_of(schema)


def codec_for(
    decl: DecoderDeclaration, schema: Schema | None = None, *, root: Path | None = None, limits: Limits | None = None
) -> Codec:
    """The codec of a declaration. `schema` (DDL or a contract's fields) serves where the declaration names none;
    paths in the declaration are looked up from `root`, the project's folder."""
    return Decoding(schema, root or Path(), limits or Limits()).codec(decl)
