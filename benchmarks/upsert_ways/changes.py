"""Orders, and a stream of changes to them: 89 % new ones, 10 % updates, 1 % deletes."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from lodestream.sources.source import Position, Source

A_DAY = 30_000  # orders: a larger table is one that goes back further
UPDATES, DELETES = 100, 10  # of 1,000 changes
ROW = "id STRING, day DATE, zone INT, amount DECIMAL(10,2), status STRING, note STRING, at BIGINT"


def order(number: str, at: str) -> list[str]:
    """An order by its number: keys are spread at random, days follow the numbers."""
    return [
        f"md5(cast({number} AS string)) AS id",
        f"date_add(DATE'2020-01-01', cast(({number}) DIV {A_DAY} AS int)) AS day",
        f"cast(pmod({number} * 7919, 265) AS int) AS zone",
        f"cast(pmod({number} * 31 + {at} * 17, 100000) / 100 AS decimal(10,2)) AS amount",
        f"CASE WHEN {at} > 0 THEN 'corrected' ELSE 'new' END AS status",
        f"concat('order ', {number}) AS note",
        f"{at} AS at",
    ]


def stored(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, numPartitions=max(2, rows // 2_500_000)).selectExpr(*order("id", "0L"))


class Changes(Source):
    """Batch by batch; updates and deletes hit any of the last `reach` stored orders, each with the same chance.

    Position: `{"next": number of the next change}`.
    """

    name = "kafka"

    def __init__(self, spark: SparkSession, rows: int, reach: int, size: int, end: Callable[[], int]) -> None:
        self._spark = spark
        self._rows = rows
        self._reach = reach
        self._size = size
        self._end = end

    def latest(self) -> Position:
        return {"next": self._end()}

    def start(self, latest: Position) -> Position:
        return {"next": 0}

    def check(self, since: Position, latest: Position) -> None:
        """Nothing can be lost here."""

    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        return latest

    def pending(self, since: Position, to: Position) -> int:
        return int(to["next"] - since["next"])

    def accept(self, since: Position, latest: Position) -> Position:
        return latest

    def read(self, since: Position, to: Position) -> DataFrame:
        changes = self.changed(since, to)
        event = f.to_json(f.struct(*[name for name in changes.columns if name != "change"]))
        return changes.select(
            f.lit(None).cast("binary").alias("key"),
            event.cast("binary").alias("value"),
            f.lit(None).cast("array<struct<key:string,value:binary>>").alias("headers"),
            f.lit("orders").alias("topic"),
            f.lit(0).alias("partition"),
            f.col("change").alias("offset"),
            f.expr("timestamp '2024-02-01'").alias("timestamp"),
        )

    def changed(self, since: Position, to: Position) -> DataFrame:
        return changed(self._spark, self._rows, self._reach, since["next"], to["next"], self._size)


def changed(spark: SparkSession, rows: int, reach: int, first: int, end: int, size: int) -> DataFrame:
    """Changes by their numbers: the first ones of each batch are updates and deletes of stored orders."""
    updates, deletes = size * UPDATES // 1000, size * DELETES // 1000
    turn = f"pmod(change, {size})"
    old = f"{rows - 1} - pmod(xxhash64(change), {min(reach, rows)})"
    number = f"CASE WHEN {turn} < {updates + deletes} THEN {old} ELSE {rows} + change END"
    operation = f"CASE WHEN {turn} < {updates} THEN 'u' WHEN {turn} < {updates + deletes} THEN 'd' ELSE 'c' END"
    numbered = spark.range(first, end, numPartitions=1).selectExpr("id AS change")
    numbered = numbered.selectExpr("change", f"{number} AS number", f"{operation} AS op", "change + 1 AS moment")
    return numbered.selectExpr("change", *order("number", "moment"), "op")
