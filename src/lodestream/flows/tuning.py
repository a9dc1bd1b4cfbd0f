"""Spark settings that fit the size of a batch.

A batch of a thousand rows spends its time on planning, compiling and scheduling, not on rows: it runs interpreted, in
one partition, without re-planning. A large one gets all of these back.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

SMALL = 20_000

SMALL_BATCHES = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    # The text of each plan, for a user interface that nobody opens, costs as much as a look at the catalog.
    "spark.sql.ui.explainMode": "simple",
}


class Tuning:
    """Keeps a flow's own session at the settings of its current batch."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._large = {key: spark.conf.get(key) for key in SMALL_BATCHES}
        self._small: bool | None = None

    def fit(self, rows: int) -> None:
        small = rows <= SMALL
        if small is self._small:
            return
        for key, value in (SMALL_BATCHES if small else self._large).items():
            self._spark.conf.set(key, value or "")
        self._small = small
