"""Data files that no snapshot has yet: as compaction does it, Spark writes and leaves the commit to us."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lodestream.tables.jvm import members, static


def written_files(
    spark: SparkSession, table: Any, rows: DataFrame, options: Mapping[str, str] | None = None
) -> list[Any]:
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg.spark
    cache, coordinator = (
        static(spark, iceberg.SparkTableCache, "get"),
        static(spark, iceberg.FileRewriteCoordinator, "get"),
    )
    group = str(uuid.uuid4())
    cache.add(group, table)
    try:
        # Iceberg adds a catalog of its own to the thread's active session, and Spark looks for it there: in a thread
        # that has none, in no session at all.
        jvm.org.apache.spark.sql.SparkSession.setActiveSession(spark._jsparkSession)
        rows.write.format("iceberg").options(**(options or {})).mode("append").save(group)
        return members(coordinator.fetchNewFiles(table, group))
    finally:
        cache.remove(group)
        coordinator.clearRewrite(table, group)
