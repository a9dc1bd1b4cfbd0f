"""The rows of a reference file, and where they stand in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import cast

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.functions import array, array_compact, col, lit, when
from pyspark.sql.types import StringType, StructField, StructType

from lodestream.contracts.quoting import name as quoted
from lodestream.pipeline.sources import ReferenceData as Declared
from lodestream.sources.reference.lines import fault, header_of, in_file_order, line_numbers, line_with, named_once

_RAW = "_raw_record"
_MOST_FAULTS = 3


class ReferenceReader:
    """Reads one file whole; `place` is its path as Hadoop takes it."""

    def __init__(self, spark: SparkSession, declared: Declared, schema: str | None, path: Path, place: str) -> None:
        self._spark = spark
        self._declared = declared
        self._schema = schema
        self.path = path
        self._place = place

    def frame(self) -> DataFrame:
        """The rows, in the order of the declared columns, whatever the order of a CSV file's own is."""
        declared, schema = self._columns, self._in_file_order()
        reader = self._reader()
        if self._declared.format in ("csv", "json"):
            reader = reader.option("mode", "FAILFAST")  # otherwise a value that does not fit is null, and nobody knows
        if declared is None or schema is None:
            reader = reader.option("inferSchema", "true") if self._declared.format == "csv" else reader
            return reader.load(self._place)
        return reader.schema(schema).load(self._place).select(*map(quoted, declared.names))

    def where(self, rows: Sequence[int]) -> dict[int, str]:
        """Where rows of the frame stand, the first being 0: by their lines, where the file has any."""
        if self._declared.format not in ("csv", "json"):
            return {row: f"row {row + 1:,}" for row in rows}
        found = line_numbers(self.path, rows, header=self._declared.format == "csv")
        return {row: f"line {line:,}" for row, line in found.items()}

    def faults(self, hidden: Sequence[str] = ()) -> list[str]:
        """The first records that do not fit the declared columns: line, column and value, unless it is `hidden`."""
        schema, kind = self._in_file_order(), self._declared.format
        if schema is None or kind not in ("csv", "json"):
            return []
        raw = StructType([*schema, StructField(_RAW, StringType())])
        reader = self._reader().option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", _RAW)
        nulls = array_compact(array(*[when(col(quoted(name)).isNull(), lit(name)) for name in schema.names]))
        wrong = reader.schema(raw).load(self._place).where(col(_RAW).isNotNull()).select(_RAW, nulls.alias("nulls"))
        types = {field.name: field.dataType.simpleString() for field in schema}
        found = [
            (line_with(self.path, row[_RAW]), fault(row[_RAW], kind, types, row["nulls"], hidden))
            for row in wrong.limit(_MOST_FAULTS).collect()
        ]
        return [f"line {line:,}: {said}" if line else said for line, said in sorted(found, key=lambda one: one[0] or 0)]

    def _reader(self) -> DataFrameReader:
        reader = self._spark.read.format(self._declared.format)
        if self._declared.format == "csv":
            # As everyone else writes a quote inside quotes (RFC 4180); Spark's own default is a backslash.
            reader = reader.option("escape", '"')
        if self._declared.format == "csv":
            # Spark holds the header against the schema once more: a file that was replaced meanwhile is not misread.
            reader = reader.option("header", "true").option("enforceSchema", "false")
        return reader

    def _in_file_order(self) -> StructType | None:
        """The declared columns as the file has them: those of a CSV file by the names in its header."""
        csv = self._declared.format == "csv"
        header = header_of(self.path) if csv else []
        declared = self._columns
        if declared is None and csv:
            named_once(self.path, header)
        if declared is None or not csv:
            return declared
        return StructType([declared[name] for name in in_file_order(self.path, declared.names, header)])

    @cached_property
    def _columns(self) -> StructType | None:
        return cast("StructType", StructType.fromDDL(self._schema)) if self._schema else None
