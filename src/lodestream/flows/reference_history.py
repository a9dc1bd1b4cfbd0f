"""Reference data with its history: what a row said, and from when to when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, lit, struct, when

from lodestream.contracts.quoting import name as quoted
from lodestream.flows.history_rows import CURRENT, FROM, TO

HISTORY_DDL = f"{FROM} TIMESTAMP, {TO} TIMESTAMP, {CURRENT} BOOLEAN"
_OLD, _NEW = "_old", "_new"


def with_history(file: DataFrame, stored: DataFrame | None, keys: Sequence[str], loaded: datetime) -> DataFrame:
    """Every version: those that were, closed where the file says otherwise now, and what is new in the file.

    What the first load finds is valid since ever (`valid_from` is null): nobody knows since when it has been true.
    """
    own = file.columns
    if stored is None:
        return file.select(*map(quoted, own), *_span(lit(None), lit(None), lit(True)))
    held = stored.where(col(CURRENT)).select(struct(*map(quoted, stored.columns)).alias(_OLD))
    came = file.select(struct(*map(quoted, own)).alias(_NEW))
    both = held.join(came, _matches(keys), "full_outer").withColumn("_same", _same(own))
    moment = lit(loaded).cast("timestamp")
    kept = both.where(col(_OLD).isNotNull()).select(
        *[col(f"{_OLD}.{quoted(name)}").alias(name) for name in own],
        *_span(col(f"{_OLD}.{FROM}"), when(~col("_same"), moment), col("_same")),
    )
    new = both.where(col(_NEW).isNotNull() & ~col("_same")).select(
        *[col(f"{_NEW}.{quoted(name)}").alias(name) for name in own], *_span(moment, lit(None), lit(True))
    )
    return stored.where(~col(CURRENT)).unionByName(kept).unionByName(new)


def _matches(keys: Sequence[str]) -> Column:
    found = lit(True)
    for key in keys:
        found = found & col(f"{_OLD}.{quoted(key)}").eqNullSafe(col(f"{_NEW}.{quoted(key)}"))
    return found


def _same(own: Sequence[str]) -> Column:
    """Whether the file says what the table holds; false for a row that only one of them has."""
    there = col(_OLD).isNotNull() & col(_NEW).isNotNull()
    for name in own:
        there = there & col(f"{_OLD}.{quoted(name)}").eqNullSafe(col(f"{_NEW}.{quoted(name)}"))
    return coalesce(there, lit(False))


def _span(since: Column, until: Column, current: Column) -> list[Column]:
    kinds = (since.cast("timestamp"), until.cast("timestamp"), current.cast("boolean"))
    return [column.alias(name) for name, column in zip((FROM, TO, CURRENT), kinds, strict=True)]
