"""No decoding: the bytes stay where they are, in `_lode`."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lodestream.sources.codecs.codec import Codec
from lodestream.sources.codecs.shape import Shape, shape_of

_BYTES = shape_of("value binary")


@dataclass(frozen=True)
class RawCodec(Codec):
    """Gives the value bytes as the one column `value`; every row is good, null values too."""

    shape: Shape = _BYTES

    def decode(self, values: pa.Array) -> tuple[pa.StructArray, pa.Array]:
        columns = pa.StructArray.from_arrays([values.cast(pa.binary())], fields=list(self.shape.arrow))
        return columns, pa.nulls(len(values), pa.string())
