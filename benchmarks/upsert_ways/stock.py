"""The stock way: MERGE in a foreachBatch, then Gold computed anew, because no stream can read the merged table."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f
from upsert_ways.changes import ROW, changed, stored

from lodestream.tables.lake import Lake

PROPERTIES = "'write.distribution-mode'='none', 'write.spark.fanout.enabled'='true'"
COLUMNS = ("id", "day", "zone", "amount", "status", "note", "at")


class Stock:
    """Iceberg's defaults (copy-on-write), beside ours in the same session. The stream's own overhead is left out."""

    def __init__(self, spark: SparkSession, rows: int, reach: int, size: int, partition_by: str) -> None:
        self.spark = Lake(spark.newSession(), "lode").spark
        self._rows, self._reach, self._size, self._end = rows, reach, size, 0
        self.spark.sql("CREATE NAMESPACE IF NOT EXISTS lode.stock")
        parted = f"PARTITIONED BY ({partition_by})" if partition_by else ""
        self.spark.sql(f"CREATE TABLE lode.stock.orders ({ROW}) USING iceberg {parted} TBLPROPERTIES ({PROPERTIES})")
        self.spark.sql("CREATE TABLE lode.stock.by_day (day DATE, orders BIGINT, revenue DECIMAL(20,2)) USING iceberg")
        # Orders come day by day: one open file at a time is enough, however far the table goes back.
        stored(self.spark, rows).writeTo("lode.stock.orders").option("fanout-enabled", "false").append()

    def batch(self) -> dict[str, float]:
        began = time.perf_counter()
        first, self._end = self._end, self._end + self._size
        last = Window.partitionBy("id").orderBy(f.col("at").desc())
        changes = changed(self.spark, self._rows, self._reach, first, self._end, self._size).drop("change")
        changes = changes.withColumn("rank", f.row_number().over(last)).where("rank = 1").drop("rank")
        values = {name: f.col(f"fresh.{name}") for name in COLUMNS}
        (
            changes.alias("fresh")
            .mergeInto("lode.stock.orders", f.expr("orders.id = fresh.id"))
            .whenMatched(f.expr("fresh.at > orders.at AND fresh.op = 'd'"))
            .delete()
            .whenMatched(f.expr("fresh.at > orders.at"))
            .update(values)
            .whenNotMatched(f.expr("fresh.op != 'd'"))
            .insert(values)
            .merge()
        )
        merged = time.perf_counter()
        fresh = (
            self.spark.table("lode.stock.orders")
            .groupBy("day")
            .agg(f.count(f.lit(1)).alias("orders"), f.sum("amount").alias("revenue"))
        )
        fresh.writeTo("lode.stock.by_day").overwrite(f.lit(True))
        done = time.perf_counter()
        return {"merge": merged - began, "gold": done - merged, "total": done - began}
