"""Whether the same rows give the same answer again: not when a query asks the clock, the session or chance."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame, SparkSession

# How Spark prints them in a plan.
_ASKED = re.compile(
    r"\b(current_\w+|now|local_?timestamp|unix_timestamp|session_user|user)\(|"
    r"\b(rand|randn|random|uuid|shuffle|randstr|uniform)\(",
    re.IGNORECASE,
)
_SPREAD = re.compile(r"\b(monotonically_increasing_id|spark_partition_id|input_file_\w+)\(", re.IGNORECASE)
# `DATE 'today'` is a constant by the time Spark has read the text; a cast of such a word is one later. A plan prints a
# column of that name with a number: today#12.
_TYPED = re.compile(r"\b(?:date|timestamp(?:_ntz|_ltz)?)\s*(['\"])\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_CAST = re.compile(
    r"cast\(\s*(now|today|tomorrow|yesterday)\b[^()#]*? as (?:date|timestamp)|"
    r"\b(?:to_date|to_timestamp\w*)\(\s*(now|today|tomorrow|yesterday)\b(?!#)",
    re.IGNORECASE,
)
_NAMES = "spark.sql.debug.maxToStringFields"


def unrepeatable(rows: DataFrame, sql: str | None) -> str | None:
    """Why computing the rows again says nothing about the stored ones; None when it does."""
    spark = rows.sparkSession
    spark.conf.set(_NAMES, "10000")
    plan = rows._jdf.queryExecution().analyzed()
    text = str(plan.toString())
    literal = _TYPED.search(sql or "")
    word = literal[2] if literal else next((one[1] or one[2] for one in _CAST.finditer(text)), None)
    if word is not None:
        return f"its answer depends on the clock ('{word.lower()}')"
    if plan.containsPattern(_pattern(spark, "CURRENT_LIKE")):
        return f"its answer depends on the moment it is asked at{_named(text)}"
    if plan.containsPattern(_pattern(spark, "EXPRESSION_WITH_RANDOM_SEED")):
        return f"its answer depends on chance{_named(text)}"
    spread = _SPREAD.search(text)
    if spread is not None and not plan.deterministic():
        return f"its answer depends on how its rows are spread ({spread[1]})"
    return None


def _named(text: str) -> str:
    found = _ASKED.search(text)
    return f" ({found[1] or found[2]})" if found else ""


def _pattern(spark: SparkSession, name: str) -> Any:
    patterns = spark._jvm.org.apache.spark.sql.catalyst.trees.TreePattern  # type: ignore[union-attr]
    return getattr(patterns, name)()
