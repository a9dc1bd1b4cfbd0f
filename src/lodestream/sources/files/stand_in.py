"""Events that a test gives instead of files, as rows of Bronze."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lodestream.sources.files.declaration import Files
from lodestream.sources.kinds import GivenEvent


def given_lines(declared: Files, spark: SparkSession, events: Sequence[tuple[int, GivenEvent]]) -> DataFrame:
    """All of them lie in one file of the declared folder, in the order in which they were given."""
    values = [event.payload for _, event in events]
    rows = pa.table(
        {
            "value": pa.array(values, pa.binary()),
            "file": pa.array([f"{declared.path}/given" for _ in events], pa.string()),
            "row": pa.array([number + 1 for number, _ in events], pa.int64()),
            "micros": pa.array([event.micros for _, event in events], pa.int64()),
            "size": pa.array([len(value or b"") for value in values], pa.int64()),
        }
    )
    shown = ("value", "file", "row", "timestamp_micros(micros) AS modified", "size")
    return spark.createDataFrame(rows).selectExpr(*shown)
