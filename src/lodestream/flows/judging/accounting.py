"""Whether every input row came out of declared code, and is published, a dead letter, filtered or a duplicate."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, count, count_distinct, lit, struct
from pyspark.sql.types import StructType

from lodestream.errors import AuditFailed
from lodestream.flows.letters.attempts import BESIDE
from lodestream.flows.letters.envelope import enclosed, is_bronze
from lodestream.names import CARRIED
from lodestream.sources.kinds import identity_in

EVENTS = "events"
_OF = "_lode_x_event"


def events(carried: object) -> list[Column]:
    """An aggregate that counts the events which rows with this `_lode` came from; none where they have no place."""
    place = place_of_event(carried)
    return [count_distinct(place).alias(EVENTS)] if place is not None else []


def with_beside(letters: DataFrame, kept: Callable[[], DataFrame], *, keyed: bool, multiplies: bool) -> DataFrame:
    """The letters with `beside`: without keys, a replay of such an event would bring the rows that are there again.

    Null where keys tell rows apart, so that nobody has to know.
    """
    if keyed:
        return letters.withColumn(BESIDE, lit(None).cast("int"))
    if not multiplies:
        return letters.withColumn(BESIDE, lit(0))
    carried = letters.schema[CARRIED].dataType
    place = place_of_event(carried)
    event = place if place is not None else enclosed(carried)["value"]
    # A column of the user's that has the name is in the raw row; here it would be taken for ours.
    marked = letters.drop(BESIDE).withColumn(_OF, event)
    theirs = kept().select(event.alias(_OF)).join(marked.select(_OF).distinct(), _OF, "left_semi")
    counted = theirs.groupBy(_OF).agg(count(lit(1)).cast("int").alias(BESIDE))
    found = marked.join(counted, _OF, "left").withColumn(BESIDE, coalesce(col(BESIDE), lit(0)))
    return found.drop(_OF)


def place_of_event(carried: object) -> Column | None:
    """Where an event stands in Bronze. Rows of another table may carry such columns as well, several the same."""
    place = identity_in(carried.names) if isinstance(carried, StructType) and is_bronze(carried) else ()
    return struct(*[col(f"{CARRIED}.{name}") for name in place]) if place else None


def unaccounted(table: str, lost: int, rows: int) -> AuditFailed:
    return AuditFailed(
        f"{table}: {lost:,} of {rows:,} input rows are unaccounted for",
        why="the function dropped rows that neither a filter nor the contract explains",
        fix="declare the condition: filters={'name': 'rows to keep'}; where an event may give no row, as with an "
        "explode of an empty list, allow_no_rows=True counts it and explode_outer keeps it as a row",
    )
