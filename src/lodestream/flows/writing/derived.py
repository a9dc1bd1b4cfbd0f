"""Changes of a table that is made from a keyed one: the keys that changed there, with the rows as they are now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import col, expr, lit, struct, to_json

from lodestream.contracts.quoting import name as quoted
from lodestream.errors import AuditFailed
from lodestream.flows.batch import Span
from lodestream.flows.code.declared import DeclaredInputs
from lodestream.flows.judging.judged_rows import JudgedRows, passed
from lodestream.flows.judging.truncates import Floor
from lodestream.flows.writing.feed_rows import Changes, listing
from lodestream.flows.writing.siblings import Siblings
from lodestream.names import BATCH, ORDER_KEY, WEIGHT
from lodestream.sources.table.changes import KeyedChanges
from lodestream.tables.find import MOST_KEYS
from lodestream.tables.hidden import GONE
from lodestream.tables.snapshot import Snapshot

_ROW, _THERE, _LAST = "_lode_x_row", "_lode_x_there", "_lode_x_last"


@dataclass(frozen=True, slots=True)
class Followed:
    """What a batch reads of the keyed table that it follows.

    `frames` are the inputs with the changed rows as they are now, `last` each changed key and whether its row is there,
    `news` the keys that changed, when the batch looks everything up again.
    """

    frames: Mapping[str, DataFrame]
    span: Span
    last: DataFrame
    news: DataFrame | None


def followed(
    frames: Mapping[str, DataFrame], span: Span, inputs: DeclaredInputs, table: KeyedChanges, keys: Sequence[str]
) -> Followed:
    driving = inputs.driving
    feed, news = frames[driving], None
    if _looks_up_again(span, inputs):
        position = span.to[driving]
        span = replace(span, rows=span.rows + table.rows_at(position))
        news = feed.select(*map(quoted, keys))
        # The rows that have not changed stand before every change.
        rows = table.now(position).withColumns({WEIGHT: lit(1), BATCH: lit(-1).cast("bigint")})
        feed = feed.unionByName(rows)
    last = last_changes(feed, keys)
    return Followed({**frames, driving: last.where(_THERE).select(f"{_ROW}.*")}, span, last, news)


def _looks_up_again(span: Span, inputs: DeclaredInputs) -> bool:
    """Whether a lookup that corrects stored rows has changed since they were made."""
    known = [span.since[one] for one in inputs.corrected if one in span.since]
    return any(one["snapshot"] is not None for one in known) and any(
        span.since[one] != span.to[one] for one in inputs.corrected
    )


class FollowedChanges(Changes):
    """The input has ordered the changes already, so the batches themselves are the order.

    A key whose row is gone there, or is refused here, loses its row.
    """

    def __init__(self, siblings: Siblings, followed: Followed) -> None:
        self._siblings = siblings
        self._followed = followed

    def rows(self, judged: JudgedRows, floor: Floor | None, at: Snapshot, number: int) -> DataFrame:
        keys = list(self._siblings.keys)
        found = judged.rows.where(passed()).select(*map(quoted, self._siblings.columns), lit(True).alias(_THERE))
        if judged.terms.rows.multiplies:
            self._refuse_several(found, keys)
        touched = self._followed.last.select(*map(quoted, keys))
        changed = touched.join(found, keys, "left")
        order_key = struct(lit(number).cast("bigint").alias(BATCH), col(_THERE).isNull().alias(GONE))
        return changed.withColumn(ORDER_KEY, order_key).drop(_THERE)

    def _refuse_several(self, found: DataFrame, keys: Sequence[str]) -> None:
        """A table that follows a keyed one has a row for a row: which of several would stay, nobody could say."""
        several = found.groupBy(*map(quoted, keys)).count().where(col("count") > 1)
        first = several.select(to_json(struct(*map(quoted, keys))).alias("key"), "count").first()
        if first is not None:
            table = self._siblings.table
            raise AuditFailed(
                f"{table}: its code gives {first['count']:,} rows for the key {first['key']}",
                why="it follows a keyed table, so that each row there has at most one row here",
                fix="give one row a key (an array, or the one that counts), or make the several rows in Gold",
            )

    def most(self, judged: JudgedRows, floor: Floor | None, at: Snapshot) -> int:
        return self._followed.span.rows

    def listed(self, judged: JudgedRows, floor: Floor | None) -> list[Row]:
        siblings = self._siblings
        if self._followed.span.rows > MOST_KEYS or not siblings.watch.exact:
            return []
        first = col(quoted(siblings.keys[0]))
        return self._followed.last.select(*listing(siblings, first)).distinct().collect()

    def counts(self, judged: JudgedRows, at: Snapshot) -> dict[str, int]:
        counts = dict(judged.counts)
        if self._followed.news is not None and counts["dead"]:
            counts["dead"] = self.letters(judged, at).count()
        return counts

    def letters(self, judged: JudgedRows, at: Snapshot) -> DataFrame:
        """Of rows that were only looked up again, those that the table has had: the others have their letters."""
        found, news, siblings = judged.letters(), self._followed.news, self._siblings
        if news is None:
            return found
        keys = list(siblings.keys)
        had = siblings.lake.whole(siblings.table, at.id).select(*map(quoted, keys))
        return found.join(news.unionByName(had).distinct(), keys, "left_semi")

    @property
    def remembers(self) -> bool:
        return False


def last_changes(feed: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Each changed key with its row after the last change, and whether it is there at all."""
    if WEIGHT not in feed.columns:  # rows that are replayed
        feed = feed.withColumn(WEIGHT, lit(1)).withColumn(BATCH, lit(0))
    own = [one for one in feed.columns if one not in (WEIGHT, BATCH)]
    rows = feed.select(*map(quoted, keys), struct(*map(quoted, own)).alias(_ROW), WEIGHT, BATCH)
    last = rows.groupBy(*map(quoted, keys)).agg(
        expr(f"max_by(struct({_ROW}, {WEIGHT}), struct({BATCH}, {WEIGHT}))").alias(_LAST)
    )
    there = (col(f"{_LAST}.{WEIGHT}") > 0).alias(_THERE)
    return last.select(*map(quoted, keys), col(f"{_LAST}.{_ROW}").alias(_ROW), there)
