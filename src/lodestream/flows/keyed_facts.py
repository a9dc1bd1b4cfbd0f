"""What one feed snapshot holds: told while it is written, or by one small job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, collect_set, count_if, when

from lodestream.contracts.quoting import name as quoted
from lodestream.tables.feed import WEIGHT
from lodestream.tables.find import MOST_KEYS
from lodestream.tables.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Facts:
    """How many rows came, went and only mark a place; and the first key of each row that went, when they are few."""

    came: int = 0
    gone: int = 0
    marks: int = 0
    replaced: tuple[object, ...] = ()

    @classmethod
    def seen(cls, told: Mapping[str, Any]) -> Facts:
        return cls(told["came"], told["gone"], told["marks"], tuple(told.get("replaced") or ()))


def fact_columns(key: str, *, few: bool) -> list[Column]:
    went = col(WEIGHT) < 0
    counts = [
        count_if(col(WEIGHT) > 0).alias("came"),
        count_if(went).alias("gone"),
        count_if(col(WEIGHT) == 0).alias("marks"),
    ]
    return [*counts, collect_set(when(went, col(quoted(key)))).alias("replaced")] if few else counts


def facts_of(rows: DataFrame, snapshot: Snapshot, key: str) -> Facts:
    if snapshot.added_rows == 0:
        return Facts()
    told = rows.agg(*fact_columns(key, few=snapshot.added_rows <= MOST_KEYS)).collect()[0]
    return Facts.seen(told.asDict())
