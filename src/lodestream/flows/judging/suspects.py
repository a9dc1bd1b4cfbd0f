"""The rows of a batch that make declared code raise, by running it on parts of the batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import array, col, concat, lit, when

from lodestream.errors import UserCodeError
from lodestream.flows.judging.raising import MOST, Raising, TooManyRaise, find_raising, raised_by_row, users_trace
from lodestream.names import CARRIED
from lodestream.tables.groupable import content

MARK = "_lode_x_mark"
Judging = Callable[[DataFrame], DataFrame]


def marked(source: DataFrame) -> DataFrame:
    """Each row with a number that depends on the row alone: the same each time, whatever order Spark reads them in."""
    # By way of JSON, because maps have no hash.
    return source.withColumn(MARK, content(col(CARRIED)))


def find_suspects(table: str, source: DataFrame, judge: Judging, error: Exception, reason: str) -> list[Raising]:
    """The rows of the source on which `judge` raises; stops when these are too many, or none alone."""
    rows = marked(source)
    marks = sorted({row[0] for row in rows.select(MARK).toLocalIterator()})
    try:
        found = find_raising(marks, lambda first, last: _tried(rows, judge, first, last), reason) if marks else []
    except TooManyRaise as many:
        raise _stopped(table, error, f"more than {len(many.found)} rows of the batch raise") from error
    return [one for one in found if _tried(rows, judge, one.mark, one.mark)]


def without(source: DataFrame, raising: Sequence[Raising]) -> DataFrame:
    return marked(source).where(~_is_one_of(raising)).drop(MARK)


def alone(source: DataFrame, raising: Sequence[Raising], *, discreet: bool = False) -> tuple[DataFrame, Column]:
    """The raising rows, and the reasons of each; `discreet` ones do not quote what was raised."""
    reason = lit("")
    for one in raising:
        said = _kind(one.reason) if discreet else one.reason
        reason = when(col(MARK) == one.mark, lit(said)).otherwise(reason)
    return marked(source).where(_is_one_of(raising)), array(concat(lit("raised: "), reason))


def _kind(reason: str) -> str:
    """Which error it was. Its text often quotes the value that caused it, and the contract hides some."""
    found = re.match(r"\[[\w.]+\]|[\w.]+", reason)
    return f"{found[0] if found else 'error'} (its text is not shown, because the contract masks fields)"


def unsteady(table: str, error: Exception) -> UserCodeError:
    return _stopped(table, error, "the batch raises, and no row of it raises by itself")


def _tried(rows: DataFrame, judge: Judging, first: int, last: int) -> str | None:
    part = rows.where(col(MARK).between(first, last)).drop(MARK)
    try:
        # Every column is computed: counting rows would leave out those that nobody counts.
        judge(part).write.format("noop").mode("overwrite").save()
    except Exception as error:
        reason = raised_by_row(error)
        if reason is None:
            raise
        return reason
    return None


def _is_one_of(raising: Sequence[Raising]) -> Column:
    return col(MARK).isin([one.mark for one in raising])


def _stopped(table: str, error: Exception, why: str) -> UserCodeError:
    return UserCodeError(
        f"{users_trace(error)}\n{table}: its code raises in Spark's tasks",
        why=f"{why}; up to {MOST} rows of a batch may, and become dead letters",
        fix="correct the function, the query or the rule; nothing of the batch was published",
    )
