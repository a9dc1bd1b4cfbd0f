"""The peer: three stock Structured Streaming queries on the same session settings, each as fast as it can go.

No trigger delay, no shuffle before a write, and a MERGE that touches only the groups of its batch. With `tuned` it also
gets the settings that our engine chooses for small batches.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from lodestream.config import load_config
from lodestream.flows.context import SMALL_BATCHES
from lodestream.runtime.session import start_session

BRONZE, SILVER, GOLD = "lode.bronze.events_raw", "lode.silver.events", "lode.gold.by_zone"
PROPERTIES = (
    "'write.distribution-mode'='none', 'write.spark.fanout.enabled'='true', "
    "'write.metadata.delete-after-commit.enabled'='true', 'write.metadata.previous-versions-max'='20'"
)


def create(spark: SparkSession) -> None:
    for namespace in ("bronze", "silver", "gold"):
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lode.{namespace}")
    columns = {
        BRONZE: "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, topic STRING, "
        "partition INT, offset BIGINT, timestamp TIMESTAMP",
        SILVER: "id BIGINT, zone INT, fare DECIMAL(10,2), at TIMESTAMP_NTZ",
        GOLD: "zone INT, n BIGINT, revenue DECIMAL(20,2)",
    }
    for name, ddl in columns.items():
        spark.sql(f"CREATE TABLE {name} ({ddl}) USING iceberg TBLPROPERTIES ({PROPERTIES})")


def merge(batch: DataFrame, _number: int) -> None:
    delta = batch.groupBy("zone").agg(f.count(f.lit(1)).alias("n"), f.sum("fare").alias("revenue")).alias("delta")
    (
        delta.mergeInto(GOLD, f.expr("by_zone.zone = delta.zone"))
        .whenMatched()
        .update({"n": f.expr("by_zone.n + delta.n"), "revenue": f.expr("by_zone.revenue + delta.revenue")})
        .whenNotMatched()
        .insertAll()
        .merge()
    )


def main(root: str, topic: str, bootstrap: str, variant: str = "") -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    spark = start_session(load_config(Path(root)), app_name="stock")
    for key, value in SMALL_BATCHES.items() if variant == "tuned" else ():
        spark.conf.set(key, value)
    create(spark)
    checkpoints = Path(root) / "checkpoints"
    kafka = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    raw = spark.readStream.format("kafka").options(**kafka, includeHeaders="true").load()
    bronze = raw.select("key", "value", "headers", "topic", "partition", "offset", "timestamp")
    parsed = f.from_json(f.col("value").cast("string"), "id bigint, zone int, fare double, at string")
    silver = spark.readStream.format("iceberg").load(BRONZE).select(parsed.alias("e"))
    silver = silver.select(
        "e.id",
        "e.zone",
        f.col("e.fare").cast("decimal(10,2)").alias("fare"),
        f.col("e.at").cast("timestamp_ntz").alias("at"),
    )
    gold = spark.readStream.format("iceberg").load(SILVER)

    def appended(rows: DataFrame, name: str, table: str) -> None:
        writer = rows.writeStream.format("iceberg").outputMode("append").trigger(processingTime="0 seconds")
        writer.option("checkpointLocation", f"file://{checkpoints / name}").option("fanout-enabled", "true").toTable(
            table
        )

    appended(bronze, "bronze", BRONZE)
    appended(silver, "silver", SILVER)
    gold.writeStream.foreachBatch(merge).trigger(processingTime="0 seconds").option(
        "checkpointLocation", f"file://{checkpoints / 'gold'}"
    ).start()
    while not stop.wait(0.2):
        failed = [query.exception() for query in spark.streams.active if query.exception()]
        if failed or len(spark.streams.active) < 3:
            raise SystemExit(f"a query ended: {failed}")
    for query in spark.streams.active:
        query.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
