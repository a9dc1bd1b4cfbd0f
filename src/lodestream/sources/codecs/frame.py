"""A Bronze DataFrame with its values decoded, and the fields of its events that nobody named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from lodestream.contracts import quoting
from lodestream.errors import RegistryUnavailable
from lodestream.names import CARRIED, ERROR
from lodestream.sources.codecs.codec import Codec
from lodestream.sources.codecs.required import Required

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

_DECODED, _VALUE = "_decoded", "value"
_COUNT, _NAMES = "unknown", "unknown_names"
# Every row of a small batch is looked at, of a larger one about as many: a second look at each would cost a second.
_MOST_ROWS = 20_000
_LONGEST_VALUE = 1_000_000
_MOST_NAMES = 20
# Events whose fields are named by their data bring new ones for ever: after so many, nobody learns from another one.
_MOST_TOLD = 1_000
_SHOWN = 80
_SILENT = re.compile(r"RegistryUnavailable: ([^\n]*)(?:\n\s*why: ([^\n]*))?")


@dataclass(frozen=True)
class Decoder:
    """How the values of one Bronze table become columns."""

    codec: Codec
    required: Required | None = None

    def __call__(self, df: DataFrame) -> DataFrame:
        decoded = _decoded(df, self.codec, _VALUE, self._column(df.sparkSession))
        return self.required.held(decoded, ERROR) if self.required is not None and self.required.missing else decoded

    @cached_property
    def _column(self) -> Callable[[SparkSession], Column | None]:
        """Made once for a session: a batch is too short for a dozen calls into the JVM."""
        return lru_cache(maxsize=1)(lambda spark: self.codec.in_jvm(spark, _VALUE))


def decode_frame(df: DataFrame, codec: Codec, *, value: str = _VALUE) -> DataFrame:
    """The codec's columns, then `_lode` (every column of `df` as one struct) and `_error` (null for a good row)."""
    return _decoded(df, codec, value, codec.in_jvm(df.sparkSession, value))


def _decoded(df: DataFrame, codec: Codec, value: str, column: Column | None) -> DataFrame:
    return _in_workers(df, codec, value) if column is None else _in_jvm(df, codec, column)


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


class UnknownFields:
    """Fields that events carry and the contract does not name: noticed and counted, never a reason to stop.

    It is about the top-level fields of JSON events. Other formats name their fields in a schema.
    """

    def __init__(self, decode: Decoder | None) -> None:
        columns = decode.codec.shape.columns if decode is not None and decode.codec.json_objects else ()
        self._known = sorted({name.lower() for column in columns for name in column.sources})
        self._told: set[str] = set()

    def looked(self, rows: int) -> str:
        """SQL for the rows of a batch that are looked at: of more than those the raw event is of no use here."""
        if not self._known:
            return "false"
        looked = f"octet_length({CARRIED}.value) < {_LONGEST_VALUE}"
        return looked if rows <= _MOST_ROWS else f"{looked} AND {_one_in(-(-rows // _MOST_ROWS))}"

    def aggregates(self, rows: int) -> list[Column]:
        """Beside the other counts of a batch, in the same job."""
        if not self._known:
            return []
        from pyspark.sql.functions import collect_set, count_if, expr, flatten, size, when
        from pyspark.sql.functions import slice as part

        listed = ", ".join(map(quoting.text, self._known))
        keys = f"json_object_keys(CASE WHEN {self.looked(rows)} THEN cast({CARRIED}.value AS string) END)"
        unknown = expr(f"transform(filter({keys}, k -> NOT lower(k) IN ({listed})), k -> left(k, {_SHOWN}))")
        some = size(unknown) > 0
        return [
            count_if(some).alias(_COUNT),
            flatten(collect_set(when(some, part(unknown, 1, _MOST_NAMES)))).alias(_NAMES),
        ]

    def count(self, seen: Row) -> dict[str, int]:
        return {_COUNT: int(seen[_COUNT])} if self._known and seen[_COUNT] else {}

    def news(self, seen: Row) -> list[str]:
        """Names that nobody was told of yet."""
        if not self._known or len(self._told) >= _MOST_TOLD:
            return []
        new = sorted(set(seen[_NAMES]) - self._told)[:_MOST_NAMES]
        self._told.update(new)
        return new


def _one_in(share: int) -> str:
    return f"pmod(xxhash64({CARRIED}.value), {share}) = 0"
