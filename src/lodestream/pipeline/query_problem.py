"""One thing that is wrong with a query, and where."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from lodestream.pipeline.lint import Severity


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that Spark would refuse, and the line of the query that has it."""

    what: str
    why: str
    fix: str
    line: int | None
    severity: Severity = "error"


def line_of(node: exp.Expr) -> int | None:
    return next((one.meta["line"] for one in node.walk() if "line" in one.meta), None)


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that Spark reads where a column could stand.
WORDS = words(
    "all current_catalog current_database current_date current_schema current_time current_timestamp current_user "
    "default grouping__id localtimestamp null session_user session_window user window"
)
_UNITS = words(
    "year years quarter quarters month months week weeks day days dayofyear hour hours minute minutes second seconds "
    "millisecond milliseconds microsecond microseconds isoyear century decade"
)


def unit_of_time(column: exp.Column) -> bool:
    """`MINUTE` in `timestampdiff(MINUTE, ...)`."""
    return len(column.parts) == 1 and column.name.lower() in _UNITS and isinstance(column.parent, exp.Func)
