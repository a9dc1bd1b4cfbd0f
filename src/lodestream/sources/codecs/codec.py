"""The seam between raw bytes and typed columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from lodestream.sources.codecs.shape import Shape

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Limits:
    """What one message may cost. A message beyond a limit is a broken row, never a stopped stream."""

    value_bytes: int = 16 * 1024 * 1024
    items: int = 250_000
    depth: int = 100


class BrokenRow(Exception):
    """This row cannot be decoded; the text is the reason that its dead letter shows."""


class Codec(ABC):
    """Bytes in, typed columns and reasons out. An instance is pickled and runs in Spark's workers.

    `decode` is called once per batch of rows, never with rows of two batches mixed. It must not raise for any bytes:
    a row that cannot be decoded gets a reason and null columns. It raises a `Transient` error when it could not even
    try (a registry that does not answer): then the whole batch is tried again and no row is blamed.
    """

    shape: Shape

    @property
    def ddl(self) -> str:
        """The decoded columns as Spark DDL."""
        return self.shape.ddl

    # Whether a message is a JSON object whose fields are the columns: then fields that nobody declared are noticed.
    json_objects: ClassVar[bool] = False

    def in_jvm(self, spark: SparkSession, value: str) -> SparkColumn | None:
        """A struct column of the decoded `value` with `_error` last, where Spark itself can decode; None: `decode`."""
        return None

    @abstractmethod
    def decode(self, values: pa.Array) -> tuple[pa.StructArray, pa.Array]:
        """The columns of `shape` and, in parallel, null for a good row or the reason for a broken one."""


class RowCodec(Codec):
    """A codec that reads one message at a time, for formats without a vectorised reader."""

    limits: Limits
    format: str
    empty_is_a_message = False

    @abstractmethod
    def row(self, value: bytes) -> dict[str, Any]:
        """The columns of one message, missing ones left out. Raises BrokenRow."""

    def decode(self, values: pa.Array) -> tuple[pa.StructArray, pa.Array]:
        rows: list[dict[str, Any] | None] = []
        errors: list[str | None] = []
        for value in values:
            row, error = self._one(value.as_py())
            rows.append(row)
            errors.append(error)
        return struct_array(rows, self.shape), pa.array(errors, pa.string())

    def _one(self, value: bytes | None) -> tuple[dict[str, Any] | None, str | None]:
        try:
            return self.row(self._checked(value)), None
        except BrokenRow as broken:
            return None, f"{self.format}: {broken}"

    def _checked(self, value: bytes | None) -> bytes:
        if value is None:
            raise BrokenRow("no value (null, a tombstone)")
        if not value and not self.empty_is_a_message:
            raise BrokenRow("empty value")
        if len(value) > self.limits.value_bytes:
            raise BrokenRow(f"{len(value):,} bytes, the limit is {self.limits.value_bytes:,}")
        return value


class RecordCodec(RowCodec):
    """A codec whose messages are records of named values, such as an envelope can be made of."""

    @abstractmethod
    def record(self, value: bytes) -> dict[str, Any]:
        """Everything in one message, by name. Raises BrokenRow."""


def struct_array(rows: Iterable[dict[str, Any] | None], shape: Shape) -> pa.StructArray:
    """Rows as columns. A broken row is a struct of nulls, not a null struct: its columns stand alone in a frame."""
    return pa.array([row or {} for row in rows], shape.arrow)
