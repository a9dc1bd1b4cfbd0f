"""The open letters of a table, at one snapshot of its dead-letter table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import broadcast, col, exists, expr, lit, lower

from lodestream.flows.letters.attempts import BESIDE
from lodestream.flows.letters.envelope import SOURCE_COORDINATES
from lodestream.flows.letters.table import Survey
from lodestream.names import EVENT, dead_of
from lodestream.recovery.choice import Choice
from lodestream.tables.lake import Lake

# One event may have several letters. Its coordinates alone would not do: a recreated topic counts from 0 again.
_PARTS = (*SOURCE_COORDINATES, "unix_micros(timestamp)", "xxhash64(value)")
_EVENT = f"CASE WHEN offset IS NULL AND file IS NULL THEN letter ELSE concat_ws('|', {', '.join(_PARTS)}) END"
# Characters of an id that is not shortened.
_WHOLE = 32


class OpenLetters:
    def __init__(self, lake: Lake, table: str, survey: Survey) -> None:
        self._lake = lake
        self.snapshot = survey.snapshot
        rows = lake.whole(dead_of(table), survey.snapshot)
        if BESIDE not in rows.columns:  # a snapshot from before there was such a column
            rows = rows.withColumn(BESIDE, lit(None).cast("int"))
        if survey.undecided:
            # An unknown attempt is one of a discard, which counts at once.
            rows = rows.where(~col("attempt").isin(*survey.undecided) | col("attempt").isNull())
        decided = rows.where(col("state") != "open").select("letter").distinct()
        self.all = (
            rows.where(col("state") == "open").join(decided, "letter", "left_anti").withColumn(EVENT, expr(_EVENT))
        )

    def chosen(self, choice: Choice) -> DataFrame:
        found = self.all.where(_condition(choice))
        return found if choice.limit is None else found.orderBy("dead_at", "letter").limit(choice.limit)

    def of_events(self, events: DataFrame) -> DataFrame:
        """Every open letter of these events: an event is replayed as a whole."""
        return self.all.join(broadcast(events), EVENT, "left_semi")

    def named(self, events: list[str]) -> DataFrame:
        # As Arrow: rows of Python objects would start Python workers, for this alone.
        names = pa.table({EVENT: pa.array(events, pa.string())})
        return self._lake.spark.createDataFrame(names)


def in_bucket(number: int, of: int) -> Column:
    """A share of the events, the same each time."""
    return lit(True) if of == 1 else expr(f"pmod(xxhash64({EVENT}), {of}) = {number}")


def _condition(choice: Choice) -> Column:
    held = lit(True)
    if choice.letters:
        named = col("letter").isin([one for one in choice.letters if len(one) == _WHOLE])
        for one in choice.letters:
            named = named | col("letter").startswith(one) if len(one) < _WHOLE else named
        held = held & named
    if choice.reason is not None:
        wanted = choice.reason.lower()
        held = held & exists(col("reasons"), lambda reason: lower(reason).contains(wanted))
    if choice.rule is not None:
        held = held & exists(col("reasons"), lambda reason: _names(lower(reason), choice.broken))
    if choice.since is not None:
        held = held & (col("dead_at") >= lit(choice.since))
    if choice.until is not None:
        held = held & (col("dead_at") < lit(choice.until))
    return held if choice.batch is None else held & (col("batch") == choice.batch)


def _names(reason: Column, broken: Sequence[str]) -> Column:
    found = reason.isin(list(broken))
    for one in broken:
        found = found | reason.startswith(f"{one}: ")
    return found
