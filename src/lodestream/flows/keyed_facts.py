"""What one feed snapshot holds, told by one small job."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, collect_set, count_if, lit, when

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


def facts_of(rows: DataFrame, snapshot: Snapshot, key: str) -> Facts:
    if snapshot.added_rows == 0:
        return Facts()
    went = col(WEIGHT) < 0
    few = snapshot.added_rows <= 2 * MOST_KEYS
    seen = rows.agg(
        count_if(col(WEIGHT) > 0).alias("came"),
        count_if(went).alias("gone"),
        count_if(col(WEIGHT) == 0).alias("marks"),
        (collect_set(when(went, col(quoted(key)))) if few else lit(None)).alias("replaced"),
    ).collect()[0]
    return Facts(seen["came"], seen["gone"], seen["marks"], tuple(seen["replaced"] or ()))
