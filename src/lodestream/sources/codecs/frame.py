"""A Bronze DataFrame with its values decoded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lodestream.contracts import quoting
from lodestream.errors import RegistryUnavailable
from lodestream.names import CARRIED, ERROR
from lodestream.sources.codecs.codec import Codec
from lodestream.sources.codecs.required import Required

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DECODED = "_decoded"
_SILENT = re.compile(r"RegistryUnavailable: ([^\n]*)(?:\n\s*why: ([^\n]*))?")


@dataclass(frozen=True, slots=True)
class Decoder:
    """How the values of one Bronze table become columns."""

    codec: Codec
    required: Required | None = None

    def __call__(self, df: DataFrame) -> DataFrame:
        return decode_frame(df, self.codec, required=self.required)


def decode_frame(df: DataFrame, codec: Codec, *, value: str = "value", required: Required | None = None) -> DataFrame:
    """The codec's columns, then `_lode` (every column of `df` as one struct) and `_error` (null for a good row)."""
    column = codec.in_jvm(df.sparkSession, value)
    decoded = _in_workers(df, codec, value) if column is None else _in_jvm(df, codec, column)
    return required.held(decoded, ERROR) if required is not None else decoded


def _in_jvm(df: DataFrame, codec: Codec, column: Column) -> DataFrame:
    names = [f"{_DECODED}.{quoting.name(column.name)}" for column in codec.shape.columns]
    return df.select(column.alias(_DECODED), _raw(df)).select(*names, CARRIED, f"{_DECODED}.{ERROR}")


def _in_workers(df: DataFrame, codec: Codec, value: str) -> DataFrame:
    schema = f"{codec.ddl}, {CARRIED} {df.schema.simpleString()}, {ERROR} string"
    return df.select(_raw(df)).mapInArrow(_Decoding(codec, value), schema)


def _raw(df: DataFrame) -> Column:
    from pyspark.sql.functions import struct

    return struct(*(quoting.name(name) for name in df.columns)).alias(CARRIED)


def registry_failure(error: BaseException | str) -> RegistryUnavailable | None:
    """The registry's silence behind a failed Spark job, or None: a worker's error arrives as text in Spark's own."""
    match = _SILENT.search(str(error))
    if match is None:
        return None
    return RegistryUnavailable(
        match[1], why=(match[2] or "").strip() or None, fix="check that it runs and can be reached from the executors"
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
            yield pa.RecordBatch.from_arrays([*columns.flatten(), raw, errors], names=[*names, CARRIED, ERROR])
