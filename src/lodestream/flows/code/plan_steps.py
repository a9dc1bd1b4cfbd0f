"""What declared code may do to the number of rows, as far as Spark's plan of it shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from lodestream.errors import UserCodeError
from lodestream.names import CARRIED

# Steps of a plan that give at most one row for each: all others may give several.
_ONE_ROW = frozenset(
    ("Project", "Filter", "SubqueryAlias", "View", "Window", "Sort", "Deduplicate", "LogicalRDD", "LocalRelation",
     "Repartition", "RepartitionByExpression", "RebalancePartitions", "ResolvedHint", "GlobalLimit", "LocalLimit")
)  # fmt: skip
_DROP = frozenset(("Filter", "Deduplicate", "GlobalLimit"))


def multiplies(rows: DataFrame) -> bool:
    """Whether a row of the inputs may become several, as far as the plan shows.

    Then as many rows may come out as went in although some were dropped, and events are counted instead of rows.
    """
    return not _ONE_ROW.issuperset(_steps(rows))


def drops(rows: DataFrame) -> bool:
    """Whether a row of the inputs may be missing from the result, where each becomes one at most."""
    return not multiplies(rows) and not _DROP.isdisjoint(_steps(rows))


def refuse_distinct(table: str, rows: DataFrame) -> None:
    """Rows that carry their raw event are never the same: a DISTINCT over them does nothing, without a word."""
    told = not {"Distinct", "Deduplicate"}.isdisjoint(_steps(rows))
    if told and _compares_events(rows._jdf.queryExecution().analyzed()):
        raise UserCodeError(
            f"{table}: it removes duplicates, which has no effect",
            why="each row has its raw event beside it, and no two events are the same",
            fix='to keep the first row of each key, whenever a copy comes: keys="id"; for UNION write UNION ALL',
        )


def _compares_events(plan: Any) -> bool:
    """Whether a step of the plan compares rows by the column that carries the event, among others."""
    name = str(plan.nodeName())
    compared = plan.output() if name == "Distinct" else plan.keys() if name == "Deduplicate" else None
    if compared is not None and CARRIED in _listed(compared, lambda one: str(one.name())):
        return True
    return any(_listed(plan.children(), _compares_events))


def _listed(found: Any, told: Callable[[Any], Any]) -> list[Any]:
    return [told(found.apply(place)) for place in range(found.size())]


def _steps(rows: DataFrame) -> list[str]:
    tree = str(rows._jdf.queryExecution().analyzed().treeString())
    return re.findall(r"^[\s:+\-]*'?(\w+)", tree, re.MULTILINE)
