"""A Bronze DataFrame with its values decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lodestream.contracts import quoting
from lodestream.sources.codecs.codec import Codec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RAW = "_lode"
ERROR = "_error"


def decode_frame(df: DataFrame, codec: Codec, *, value: str = "value") -> DataFrame:
    """The codec's columns, then `_lode` (every column of `df` as one struct) and `_error` (null for a good row)."""
    from pyspark.sql.functions import struct

    raw = df.select(struct(*(quoting.name(name) for name in df.columns)).alias(RAW))
    return raw.mapInArrow(
        _Decoding(codec, value),
        f"{codec.ddl}, {RAW} {df.schema.simpleString()}, {ERROR} string",
    )


class _Decoding:
    def __init__(self, codec: Codec, value: str) -> None:
        self.codec = codec
        self.value = value

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            raw = batch.column(0)
            columns, errors = self.codec.decode(raw.field(raw.type.get_field_index(self.value)))
            names = [field.name for field in columns.type]
            yield pa.RecordBatch.from_arrays([*columns.flatten(), raw, errors], names=[*names, RAW, ERROR])
