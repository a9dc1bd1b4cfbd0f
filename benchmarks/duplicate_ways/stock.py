"""The stock way, as in a foreachBatch: drop duplicates within the batch, then those that the table has, then append."""

from __future__ import annotations

import time

from duplicate_ways.events import events
from pyspark.sql import SparkSession
from upsert_ways.changes import ROW, stored
from upsert_ways.stock import PROPERTIES

from lodestream.tables.lake import Lake


class Stock:
    """Beside ours in the same session. The stream's own overhead is left out, and so is decoding."""

    def __init__(self, spark: SparkSession, rows: int, size: int, partition_by: str) -> None:
        self.spark = Lake(spark.newSession(), "lode").spark
        self._rows, self._reach, self._size, self._end = rows, rows, size, 0
        self._dated = bool(partition_by)
        self.spark.sql("CREATE NAMESPACE IF NOT EXISTS lode.stock")
        parted = f"PARTITIONED BY ({partition_by})" if partition_by else ""
        self.spark.sql(f"CREATE TABLE lode.stock.orders ({ROW}) USING iceberg {parted} TBLPROPERTIES ({PROPERTIES})")
        stored(self.spark, rows).writeTo("lode.stock.orders").option("fanout-enabled", "false").append()

    def look_back(self, reach: int) -> None:
        self._reach = reach

    def batch(self) -> dict[str, float]:
        began = time.perf_counter()
        first, self._end = self._end, self._end + self._size
        came = events(self.spark, self._rows, self._reach, first, self._end, self._size).drop("change").persist()
        known = self.spark.table("lode.stock.orders")
        if self._dated:  # as one who knows that copies come within days would write it
            oldest = came.selectExpr("min(day)").collect()[0][0]
            known = known.where(known.day >= oldest)
        fresh = came.dropDuplicates(["id"]).join(known, "id", "left_anti")
        fresh.select(*known.columns).writeTo("lode.stock.orders").append()
        came.unpersist()
        return {"total": time.perf_counter() - began}
