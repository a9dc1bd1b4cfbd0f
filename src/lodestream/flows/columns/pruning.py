"""The partitions that a set of rows lies in: told by one job, and given back as a filter that reads no other file.

A moment that passes through Python comes back moved by the machine's time zone, and a filter made of it would miss
rows. So a period of time is told as a number (days or hours since 1970, months or years), and other values as text.
Periods of an instant are those of UTC, as Iceberg's own are, whatever the zone of the session is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql.functions import collect_set, expr, size, when
from pyspark.sql.types import StructType

from lodestream.contracts.quoting import name as quoted
from lodestream.contracts.quoting import text
from lodestream.pipeline import Partition
from lodestream.tables.find import same_again

_DAY, _HOUR = 86_400_000_000, 3_600_000_000
_MOMENTS = ("date", "timestamp", "timestamp_ntz")
# Types whose values are the same again when they are read from their text.
_TEXTUAL = ("string", "boolean", "tinyint", "smallint", "int", "bigint", *_MOMENTS)
# More ranges or values than this are as slow as none: then one range from the lowest to the highest is the filter.
_MOST = 62


@dataclass(frozen=True, slots=True)
class Pruning:
    """Partition fields, each with the type of its column; those that no filter on values can prune are left out."""

    fields: tuple[tuple[Partition, str], ...] = ()

    @classmethod
    def over(cls, partitions: Iterable[Partition], schema: StructType) -> Pruning:
        kinds = {field.name: field.dataType.simpleString() for field in schema}
        found = [(one, kinds[one.column]) for one in partitions if one.column in kinds]
        return cls(tuple((one, kind) for one, kind in found if _prunable(one, kind)))

    def periods(self) -> list[Column]:
        """The partition that a row lies in, as one value for each field."""
        return [expr(_period(one, kind, quoted(one.column))).alias(f"_{one.column}") for one, kind in self.fields]

    def touched(self) -> list[Column]:
        """Aggregates that tell which partitions the rows lie in, for a job that counts them anyway."""
        found = self.extent()
        for one, kind in self.fields:
            listed = collect_set(expr(_told(one, kind, _period(one, kind, quoted(one.column)))))
            found.append(when(size(listed) <= _MOST, listed).alias(f"each {one}"))
        return found

    def extent(self, where: str = "true") -> list[Column]:
        """Aggregates that tell the first and the last partition of the rows for which `where` is true, as SQL."""
        found: list[Column] = []
        for one, kind in self.fields:
            value = _period(one, kind, f"CASE WHEN {where} THEN {quoted(one.column)} END")
            found += [expr(_told(one, kind, f"{end}({value})")).alias(f"{end} {one}") for end in ("min", "max")]
            found.append(expr(f"count_if(({where}) AND {quoted(one.column)} IS NULL)").alias(f"none {one}"))
        return found

    def only(self, rows: DataFrame, told: Row) -> DataFrame:
        """The stored rows that lie in the partitions that `touched` told of."""
        conditions = [_inside(one, kind, told) for one, kind in self.fields]
        found = " AND ".join(condition for condition in conditions if condition)
        return rows.where(found) if found else rows

    def ranges(self, told: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        """By column the lowest and the highest value, as SQL, that rows of the `extent` can have."""
        found: dict[str, tuple[str, str]] = {}
        for one, kind in self.fields:
            low, high = told[f"min {one}"], told[f"max {one}"]
            # A row without the value lies in no range.
            if low is not None and not told[f"none {one}"] and same_again((low, high)):
                found[one.column] = _ends(one, kind, low, high)
        return found


def day_number(column: str, kind: str) -> str:
    """SQL for the day of a moment, counted from 1970."""
    return _ordinal("days", kind, column)


def on_days(column: str, kind: str, days: Iterable[int]) -> str:
    """SQL that is true for moments on these days."""
    return _in_periods(Partition("days", column), kind, days)


def before(column: str, kind: str, day: int) -> str:
    """SQL that is true for moments before the day."""
    return f"{quoted(column)} < {_start('days', kind, day)}"


def _prunable(one: Partition, kind: str) -> bool:
    if one.transform == "identity":
        return kind in _TEXTUAL or kind.startswith("decimal(")
    return kind in _MOMENTS and one.transform in ("years", "months", "days", "hours")


def _period(one: Partition, kind: str, column: str) -> str:
    return column if one.transform == "identity" else _ordinal(one.transform, kind, column)


def _ordinal(transform: str, kind: str, column: str) -> str:
    """The number of a period. No function here asks for the zone of the session."""
    if transform == "hours":
        if kind == "timestamp":
            return _floored(column, _HOUR)
        return f"(unix_date(cast({column} AS date)) * 24L + hour({column}))"
    if kind == "timestamp":
        day = f"date_from_unix_date(cast({_floored(column, _DAY)} AS int))"
    else:
        day = f"cast({column} AS date)"
    numbers = {"days": f"unix_date({day})", "months": f"year({day}) * 12L + month({day}) - 1", "years": f"year({day})"}
    return f"cast({numbers[transform]} AS bigint)"


def _floored(column: str, size: int) -> str:
    micros = f"unix_micros({column})"
    return f"(({micros} - pmod({micros}, {size}L)) div {size}L)"


def _start(transform: str, kind: str, number: int) -> str:
    """The first moment of a period."""
    if transform == "hours":
        if kind == "timestamp":
            return f"timestamp_micros({number * _HOUR}L)"
        return f"(TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, {number}))"
    day = {
        "days": f"date_from_unix_date({number})",
        "months": f"make_date({number // 12}, {number % 12 + 1}, 1)",
        "years": f"make_date({number}, 1, 1)",
    }[transform]
    return f"timestamp_micros(unix_date({day}) * {_DAY}L)" if kind == "timestamp" else f"cast({day} AS {kind})"


def _told(one: Partition, kind: str, value: str) -> str:
    """How a value is told to Python: nothing that Python would take for a moment."""
    if one.transform != "identity":
        return value
    return f"cast(unix_micros({value}) AS string)" if kind == "timestamp" else f"cast({value} AS string)"


def _literal(kind: str, told: str) -> str:
    if kind == "string":
        return text(told)
    return f"timestamp_micros({told}L)" if kind == "timestamp" else f"cast({text(told)} AS {kind})"


def _ends(one: Partition, kind: str, low: Any, high: Any) -> tuple[str, str]:
    """The lowest value of the first period, and one that no value of the last period exceeds."""
    if one.transform == "identity":
        return _literal(kind, low), _literal(kind, high)
    return _start(one.transform, kind, low), _start(one.transform, kind, high + 1)


def _inside(one: Partition, kind: str, told: Row) -> str | None:
    """SQL for one field; None when the rows say nothing of it."""
    low, high, each = told[f"min {one}"], told[f"max {one}"], told[f"each {one}"]
    if not same_again((low, high, *(each or ()))):
        return None
    found = []
    if each:
        found.append(_among(one, kind, each))
    elif low is not None:
        first, last = _ends(one, kind, low, high)
        found.append(f"{quoted(one.column)} BETWEEN {first} AND {last}")
    if told[f"none {one}"]:  # rows without a value are a partition of their own, which no range holds
        found.append(f"{quoted(one.column)} IS NULL")
    return f"({' OR '.join(found)})" if found else None


def _among(one: Partition, kind: str, each: Iterable[Any]) -> str:
    if one.transform != "identity":
        return _in_periods(one, kind, each)
    return f"{quoted(one.column)} IN ({', '.join(_literal(kind, told) for told in sorted(each))})"


def _in_periods(one: Partition, kind: str, numbers: Iterable[int]) -> str:
    """Periods that follow one another are one range."""
    column, spans = quoted(one.column), []
    for first, last in _spans(numbers):
        start, end = _start(one.transform, kind, first), _start(one.transform, kind, last + 1)
        spans.append(f"({column} >= {start} AND {column} < {end})")
    return f"({' OR '.join(spans)})"


def _spans(numbers: Iterable[int]) -> list[tuple[int, int]]:
    ordered = sorted(set(numbers))
    firsts = [ordered[0], *(after for one, after in pairwise(ordered) if after > one + 1)]
    lasts = [*(one for one, after in pairwise(ordered) if after > one + 1), ordered[-1]]
    return list(zip(firsts, lasts, strict=True))
