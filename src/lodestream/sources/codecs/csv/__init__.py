"""CSV, one line per message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lodestream.pipeline.decoders import DecoderDeclaration
from lodestream.sources.codecs.kinds import register_codec

if TYPE_CHECKING:
    from lodestream.sources.codecs.choose import Decoding
    from lodestream.sources.codecs.codec import Codec

__all__ = ["Csv"]


@dataclass(frozen=True)
class Csv(DecoderDeclaration):
    """One CSV line per message, columns in the order of the schema."""

    schema: str | None = None
    delimiter: str = ","
    quote: str = '"'
    format = "csv"

    @property
    def schema_text(self) -> str | None:
        return self.schema


def _make(decl: Csv, decoding: Decoding) -> Codec:
    from lodestream.sources.codecs.csv.codec import CsvCodec

    return CsvCodec(decoding.shape(decl.schema), decoding.limits, decl.delimiter, decl.quote)


register_codec(Csv, _make)
