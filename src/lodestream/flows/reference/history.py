"""Reference data with its history: what a row said, and from when to when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.functions import coalesce, col, lead, lit, row_number, struct, when
from pyspark.sql.functions import min as least

from lodestream.contracts.quoting import name as quoted
from lodestream.names import IS_CURRENT as CURRENT
from lodestream.names import VALID_FROM as FROM
from lodestream.names import VALID_TO as TO

MOMENTS = ("date", "timestamp", "timestamp_ntz")
_OLD, _NEW = "_lode_x_old", "_lode_x_new"
_BEGINS, _FIRST = "_lode_x_begins", "_lode_x_first"


def history_ddl(moment: str = "timestamp") -> str:
    return f"{FROM} {moment}, {TO} {moment}, {CURRENT} BOOLEAN"


def as_loaded(file: DataFrame, stored: DataFrame | None, keys: Sequence[str], loaded: datetime) -> DataFrame:
    """Every version: those that were, closed where the file says otherwise now, and what is new in the file.

    What the first load finds is valid since ever (`valid_from` is null): nobody knows since when it has been true.
    """
    own = file.columns
    if stored is None:
        return file.select(*map(quoted, own), *_span(lit(None), lit(None), lit(True)))
    held = stored.where(col(CURRENT)).select(struct(*map(quoted, stored.columns)).alias(_OLD))
    came = file.select(struct(*map(quoted, own)).alias(_NEW))
    both = held.join(came, _matches(keys), "full_outer").withColumn("_lode_x_same", _same(own))
    moment = lit(loaded).cast("timestamp")
    kept = both.where(col(_OLD).isNotNull()).select(
        *[col(f"{_OLD}.{quoted(name)}").alias(name) for name in own],
        *_span(col(f"{_OLD}.{FROM}"), when(~col("_lode_x_same"), moment), col("_lode_x_same")),
    )
    new = both.where(col(_NEW).isNotNull() & ~col("_lode_x_same")).select(
        *[col(f"{_NEW}.{quoted(name)}").alias(name) for name in own], *_span(moment, lit(None), lit(True))
    )
    return stored.where(~col(CURRENT)).unionByName(kept).unionByName(new)


def as_dated(file: DataFrame, stored: DataFrame | None, keys: Sequence[str], sequence: Sequence[str]) -> DataFrame:
    """Every version by the file's own dates: one ends where the next of its key begins; no date means since ever.

    Of each key the file tells everything from its first row there on. What the table knows from before that stays, so
    a file may hold the whole history, or the newest version alone.
    """
    own = file.columns
    dated = last_of_each(file, [*keys, sequence[0]], sequence[1:]).withColumn(FROM, col(quoted(sequence[0])))
    if stored is not None:
        # In a struct, because the least of plain dates would overlook those that are missing.
        told = dated.groupBy(*map(quoted, keys)).agg(least(struct(FROM)).alias(_FIRST))
        before = stored.select(*map(quoted, own), FROM).join(told, list(keys), "left")
        kept = before.where(col(_FIRST).isNull() | (struct(FROM) < col(_FIRST)))
        dated = dated.unionByName(kept.drop(_FIRST))
    following = Window.partitionBy(*map(quoted, keys)).orderBy(col(FROM).asc_nulls_first())
    ended = dated.withColumn(TO, lead(FROM).over(following))
    return ended.withColumn(CURRENT, col(TO).isNull()).select(*map(quoted, own), FROM, TO, CURRENT)


def last_of_each(file: DataFrame, keys: Sequence[str], sequence: Sequence[str]) -> DataFrame:
    """The row of each key that stands last in the sequence."""
    if not sequence:
        return file
    newest = Window.partitionBy(*map(quoted, keys)).orderBy(*[col(quoted(one)).desc_nulls_last() for one in sequence])
    return file.withColumn(_BEGINS, row_number().over(newest)).where(col(_BEGINS) == 1).drop(_BEGINS)


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
