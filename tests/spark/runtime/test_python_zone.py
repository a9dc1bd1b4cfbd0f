"""A Python function gets a time without a zone: in UTC, as SQL has it, and not in the zone of the machine."""

from __future__ import annotations

import os
from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr, udf


def test_a_python_function_sees_and_gives_back_the_same_instant(spark: SparkSession) -> None:
    zone, same = udf(lambda _at: os.environ.get("TZ")), udf(lambda at: at, "timestamp")
    shown = udf(lambda at: at.isoformat())
    # The hour that New York has twice.
    moments = spark.sql("SELECT explode(array(timestamp'2026-11-01 05:30:00Z', timestamp'2026-11-01 06:30:00Z')) AS at")
    found = moments.select(
        zone("at"), expr("date_format(at, 'HH:mm')"), same("at").cast("long") - moments.at.cast("long"), shown("at")
    ).collect()
    assert [tuple(row) for row in found] == [
        ("UTC", "05:30", 0, datetime(2026, 11, 1, 5, 30).isoformat()),
        ("UTC", "06:30", 0, datetime(2026, 11, 1, 6, 30).isoformat()),
    ]
