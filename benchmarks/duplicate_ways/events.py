"""Orders that come once, and a few of them a second time."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from upsert_ways.changes import Changes, order

from lodestream.sources.source import Position

AGAIN = 30  # of 1,000 events


class Events(Changes):
    """Batch by batch; the copies are of any of the last `reach` orders, each with the same chance."""

    def __init__(self, spark: SparkSession, rows: int, size: int, end: Callable[[], int]) -> None:
        super().__init__(spark, rows, rows, size, end)

    def look_back(self, reach: int) -> None:
        self._reach = reach

    def changed(self, since: Position, to: Position) -> DataFrame:
        return events(self._spark, self._rows, self._reach, since["next"], to["next"], self._size)


def events(spark: SparkSession, rows: int, reach: int, first: int, end: int, size: int) -> DataFrame:
    """Events by their numbers; the first ones of each batch are copies of orders that came before the batch."""
    again = f"pmod(change, {size}) < {size * AGAIN // 1000}"
    old = f"{rows + first - 1} - pmod(xxhash64(change), {min(reach, rows)})"
    # An order that was a copy itself has no row: its neighbour, which came with the same batch, has one.
    earlier = f"CASE WHEN ({old}) >= {rows} AND pmod(({old}) - {rows}, {size}) < {size * AGAIN // 1000}"
    earlier = f"{earlier} THEN ({old}) + {size * AGAIN // 1000} ELSE ({old}) END"
    numbered = spark.range(first, end, numPartitions=1).selectExpr("id AS change")
    numbered = numbered.selectExpr("change", f"CASE WHEN {again} THEN {earlier} ELSE {rows} + change END AS number")
    return numbered.selectExpr("change", *order("number", "0L"))
