"""A raw row comes out of its dead letter as it was, whichever source gave it: no column is lost, none becomes null."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.functions import struct

from lodestream.flows.letters.envelope import enclosed, is_bronze, restored
from lodestream.names import CARRIED

VALUE = "X'00FF' AS value"
MOMENT, EARLIER = "timestamp'2024-03-10 02:30:00.123456Z'", "timestamp'2024-01-01 00:00:00Z'"
KAFKA = (
    "X'01' AS key", VALUE, "array(named_struct('key', nullif('k', ''), 'value', nullif(X'02', X'')), null) AS headers",
    "'t' AS topic", "3 AS partition", "4L AS offset", f"{MOMENT} AS timestamp",
)  # fmt: skip
OTHERS = {
    "the size of something else": (VALUE, "7L AS size"),
    "a time of its own beside the arrival": (VALUE, f"{MOMENT} AS timestamp", f"{EARLIER} AS modified"),
    "places that are text": (VALUE, "'shard-1' AS partition", "'49601' AS offset"),
    "a file with a time of its own": (
        VALUE, "'a' AS file", "1L AS row", f"{EARLIER} AS modified", "9L AS size",
        f"{MOMENT} AS timestamp",
    ),
}  # fmt: skip


def through_a_letter(spark: Any, columns: tuple[str, ...]) -> tuple[Any, Any]:
    rows = spark.range(1).selectExpr(*columns)
    letters = rows.select(struct("*").alias(CARRIED))
    held = [column.alias(name) for name, column in enclosed(letters.schema[CARRIED].dataType).items()]
    return rows.collect(), restored(letters.select(*held), rows.schema).collect()


@pytest.mark.parametrize("columns", OTHERS.values(), ids=OTHERS)
def test_columns_that_are_no_coordinates_come_back(spark: Any, columns: tuple[str, ...]) -> None:
    before, after = through_a_letter(spark, columns)
    assert after == before


def test_rows_of_a_topic_are_kept_column_by_column(spark: Any) -> None:
    before, after = through_a_letter(spark, KAFKA)
    assert after == before
    assert is_bronze(spark.range(0).selectExpr(*KAFKA).schema)


def test_of_a_file_only_its_size_is_left_out(spark: Any) -> None:
    columns = (VALUE, "'a' AS file", "1L AS row", f"{MOMENT} AS modified", "9L AS size")
    (before,), (after,) = through_a_letter(spark, columns)
    assert after.asDict() == {**before.asDict(), "size": None}
