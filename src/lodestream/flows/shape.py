"""Column lists as DDL, and the partitions a set of rows touches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, timedelta

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql.functions import col, collect_set, count_if, date_trunc, lit, max, min, to_date
from pyspark.sql.types import StructType

from lodestream.pipeline import Partition, parse_partition

_TIME = {"years": "YEAR", "months": "MONTH", "days": "DAY", "hours": "HOUR"}
# Above this many distinct days one range is as good a filter as a list.
_MOST_DAYS = 62


def ddl_of(schema: StructType, *, without: Sequence[str] = (), required: Collection[str] = ()) -> str:
    kept = [(f"`{f.name.replace('`', '``')}` {f.dataType.simpleString()}", f.name) for f in schema]
    return ", ".join(f"{ddl} NOT NULL" if name in required else ddl for ddl, name in kept if name not in without)


def partition_columns(partition_by: Sequence[str], columns: Sequence[str]) -> list[Partition]:
    """The partition fields that a filter on the rows' own values can prune."""
    parsed = [parse_partition(text) for text in partition_by]
    return [one for one in parsed if one.column in columns and one.transform in (*_TIME, "identity")]


def touched(partitions: Sequence[Partition]) -> list[Column]:
    """Aggregates that tell which partitions the rows lie in; one job with the row counts."""
    found: list[Column] = []
    for number, one in enumerate(partitions):
        found += [min(col(one.column)).alias(f"low_{number}"), max(col(one.column)).alias(f"high_{number}")]
        found.append(count_if(col(one.column).isNull()).alias(f"none_{number}"))
        if one.transform in _TIME:
            found.append(collect_set(to_date(col(one.column))).alias(f"days_{number}"))
    return found


def only_touched(rows: DataFrame, partitions: Sequence[Partition], seen: Row) -> DataFrame:
    """The stored rows that lie in the touched partitions: Iceberg skips all other files."""
    for number, one in enumerate(partitions):
        low, high = seen[f"low_{number}"], seen[f"high_{number}"]
        if low is None:
            continue
        inside = col(one.column).between(lit(low), lit(high))
        days = sorted(seen[f"days_{number}"]) if one.transform in _TIME else []
        if 0 < len(days) <= _MOST_DAYS:
            kind = rows.schema[one.column].dataType.simpleString()
            inside = inside & _any_day(one.column, kind, days)
        # Rows without a value are a partition of their own, which no range holds.
        rows = rows.where(inside | col(one.column).isNull() if seen[f"none_{number}"] else inside)
    return rows


def period(one: Partition) -> Column:
    """The partition that a row lies in, as a value."""
    plain = col(one.column)
    return (date_trunc(_TIME[one.transform], plain) if one.transform in _TIME else plain).alias(one.column)


def _any_day(column: str, kind: str, days: Sequence[date]) -> Column:
    spans = []
    for day in days:
        start = lit(day).cast(kind)
        end = lit(day + timedelta(days=1)).cast(kind)
        spans.append((col(column) >= start) & (col(column) < end))
    verdict = spans[0]
    for span in spans[1:]:
        verdict = verdict | span
    return verdict
