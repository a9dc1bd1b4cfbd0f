"""Whether every input row came out of declared code, and is published, a dead letter, filtered or a duplicate."""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, count_distinct, struct
from pyspark.sql.types import StructType

from lodestream.errors import AuditFailed
from lodestream.flows.dead.envelope import is_bronze
from lodestream.flows.silver.judge import CARRIED

EVENTS = "events"
# Steps of a plan that give at most one row for each: all others may give several.
_ONE_ROW = frozenset(
    ("Project", "Filter", "SubqueryAlias", "View", "Window", "Sort", "Deduplicate", "LogicalRDD", "LocalRelation",
     "Repartition", "RepartitionByExpression", "RebalancePartitions", "ResolvedHint", "GlobalLimit", "LocalLimit")
)  # fmt: skip
_DROP = frozenset(("Filter", "Deduplicate", "GlobalLimit"))
# With the time, because a recreated topic counts from 0 again.
_COORDINATES = (("topic", "partition", "offset", "timestamp"), ("file", "row"))


def multiplies(rows: DataFrame) -> bool:
    """Whether a row of the inputs may become several, as far as the plan shows.

    Then as many rows may come out as went in although some were dropped, and events are counted instead of rows.
    """
    return not _ONE_ROW.issuperset(_steps(rows))


def drops(rows: DataFrame) -> bool:
    """Whether a row of the inputs may be missing from the result, where each becomes one at most."""
    return not multiplies(rows) and not _DROP.isdisjoint(_steps(rows))


def _steps(rows: DataFrame) -> list[str]:
    tree = str(rows._jdf.queryExecution().analyzed().treeString())
    return re.findall(r"^[\s:+\-]*'?(\w+)", tree, re.MULTILINE)


def events(carried: object) -> list[Column]:
    """An aggregate that counts the events which rows with this `_lode` came from; none where they have no place."""
    # Rows of another table may carry such columns as well, and several of them those of one event.
    names = set(carried.names) if isinstance(carried, StructType) and is_bronze(carried) else set()
    place = next((known for known in _COORDINATES if names.issuperset(known)), None)
    return [count_distinct(struct(*[col(f"{CARRIED}.{name}") for name in place])).alias(EVENTS)] if place else []


def unaccounted(table: str, lost: int, rows: int) -> AuditFailed:
    return AuditFailed(
        f"{table}: {lost:,} of {rows:,} input rows are unaccounted for",
        why="the function dropped rows that neither a filter nor the contract explains",
        fix="declare the condition: filters={'name': 'rows to keep'}; explode_outer keeps an event that has no items",
    )
