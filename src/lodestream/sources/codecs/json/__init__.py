"""JSON, one object per message: read inside Spark's own JVM, or in Python workers where that is out of reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lodestream.pipeline.decoders import DecoderDeclaration
from lodestream.sources.codecs.kinds import register_codec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lodestream.sources.codecs.choose import Decoding
    from lodestream.sources.codecs.codec import Codec

__all__ = ["Json"]


@dataclass(frozen=True)
class Json(DecoderDeclaration):
    """One JSON object per message. Without a schema, the table's contract gives it."""

    schema: str | None = None
    format = "json"
    takes_json = True

    @property
    def schema_text(self) -> str | None:
        return self.schema


def _make(decl: Json, decoding: Decoding) -> Codec:
    from lodestream.sources.codecs.json.codec import JsonCodec

    return JsonCodec(decoding.shape(decl.schema), decoding.limits)


def _warm_up(spark: SparkSession) -> None:
    """The decoder is compiled while Bronze fetches its first rows, not when Silver waits for it."""
    from lodestream.sources.codecs.jvm_json import warm_up

    warm_up(spark)


register_codec(Json, _make, warm_up=_warm_up)
