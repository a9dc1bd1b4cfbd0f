"""Whether every input row came out of declared code, and is published, a dead letter, filtered or a duplicate."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, count, count_distinct, lit, struct
from pyspark.sql.types import StructType

from lodestream.errors import AuditFailed
from lodestream.flows.dead.envelope import enclosed, is_bronze
from lodestream.flows.dead.letters import BESIDE
from lodestream.flows.silver.judge import CARRIED

if TYPE_CHECKING:
    from lodestream.flows.silver.declared import DeclaredFlow

EVENTS = "events"
# Steps of a plan that give at most one row for each: all others may give several.
_ONE_ROW = frozenset(
    ("Project", "Filter", "SubqueryAlias", "View", "Window", "Sort", "Deduplicate", "LogicalRDD", "LocalRelation",
     "Repartition", "RepartitionByExpression", "RebalancePartitions", "ResolvedHint", "GlobalLimit", "LocalLimit")
)  # fmt: skip
_DROP = frozenset(("Filter", "Deduplicate", "GlobalLimit"))
_OF = "_event"
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
    place = _place(carried)
    return [count_distinct(place).alias(EVENTS)] if place is not None else []


def with_beside(flow: DeclaredFlow, letters: DataFrame, kept: Callable[[], DataFrame]) -> DataFrame:
    """The letters with `beside`: without keys, a replay of such an event would bring the rows that are there again.

    Null where keys tell rows apart, so that nobody has to know.
    """
    if flow.keys:
        return letters.withColumn(BESIDE, lit(None).cast("int"))
    if not flow.multiplies:
        return letters.withColumn(BESIDE, lit(0))
    carried = letters.schema[CARRIED].dataType
    place = _place(carried)
    event = place if place is not None else enclosed(carried)["value"]
    marked = letters.withColumn(_OF, event)
    theirs = kept().select(event.alias(_OF)).join(marked.select(_OF).distinct(), _OF, "left_semi")
    counted = theirs.groupBy(_OF).agg(count(lit(1)).cast("int").alias(BESIDE))
    found = marked.join(counted, _OF, "left").withColumn(BESIDE, coalesce(col(BESIDE), lit(0)))
    return found.drop(_OF)


def _place(carried: object) -> Column | None:
    """Where an event stands in Bronze. Rows of another table may carry such columns as well, several the same."""
    names = set(carried.names) if isinstance(carried, StructType) and is_bronze(carried) else set()
    place = next((known for known in _COORDINATES if names.issuperset(known)), None)
    return struct(*[col(f"{CARRIED}.{name}") for name in place]) if place else None


def unaccounted(table: str, lost: int, rows: int) -> AuditFailed:
    return AuditFailed(
        f"{table}: {lost:,} of {rows:,} input rows are unaccounted for",
        why="the function dropped rows that neither a filter nor the contract explains",
        fix="declare the condition: filters={'name': 'rows to keep'}; where an event may give no row, as with an "
        "explode of an empty list, allow_no_rows=True counts it and explode_outer keeps it as a row",
    )
