"""A Silver table made from a keyed one: it follows every change, and has a feed of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import col, expr, lit, struct
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from lodestream.contracts.quoting import name as quoted
from lodestream.errors import DeclarationError
from lodestream.flows.flow import Batch, Span
from lodestream.flows.keyed.batch import KeyedBatch
from lodestream.flows.keyed.flow import HIDDEN, KeyedFlow
from lodestream.flows.keyed.follow import Level
from lodestream.flows.keyed.judge import PLACE
from lodestream.flows.silver.judge import CARRIED, Judge
from lodestream.flows.usercode import transform
from lodestream.sources.changes import KeyedChanges
from lodestream.tables.feed import BATCH, WEIGHT
from lodestream.tables.find import MOST_KEYS
from lodestream.tables.order import GONE, plain
from lodestream.tables.publish import Base
from lodestream.tables.snapshot import Stamp

_ROW, _THERE = "_row", "_there"


class DerivedFlow(KeyedFlow):
    """The function sees the changed rows as they are now; a key whose row is gone, or is refused, loses its row here.

    Its input has ordered the changes already, so the batches themselves are the order.
    """

    @cached_property
    def judge(self) -> Judge:  # type: ignore[override]
        return Judge(self.name, self.contract, self.table.filters, self.table.expectations, None, self.keys)

    @cached_property
    def followed(self) -> KeyedChanges:
        return next(one for one in self.sources if isinstance(one, KeyedChanges))

    def judged(self, frames: Mapping[str, DataFrame], span: Span) -> KeyedBatch:
        feed, news = frames[self.driving], None
        if self._looks_up_again(span):
            place = span.to[self.driving]
            span = replace(span, rows=span.rows + self.followed.rows_at(place))
            self._tuning.fit(span.rows)
            news = feed.select(*map(quoted, self.keys))
            # The rows that have not changed stand before every change.
            rows = self.followed.now(place).withColumns({WEIGHT: lit(1), BATCH: lit(-1).cast("bigint")})
            feed = feed.unionByName(rows)
        last = last_changes(feed, self.keys)
        there = {**frames, self.driving: last.where(_THERE).select(f"{_ROW}.*")}
        return DerivedBatch(self, there, span, self.catch_up(), last, news)

    def _looks_up_again(self, span: Span) -> bool:
        """Whether a lookup that corrects stored rows has changed since they were made."""
        known = [span.since[one] for one in self.corrected if one in span.since]
        return any(place["snapshot"] is not None for place in known) and any(
            span.since[one] != span.to[one] for one in self.corrected
        )

    def _stamp(self, base: Base, span: Span, batch: Batch, decision: str | None) -> Stamp:
        """A lookup changes seldom: how old the rows are is told by the input that is followed."""
        stamp = super()._stamp(base, span, batch, decision)
        moment = self.followed.asof(span.to[self.driving]) if self.corrected and self.driving in span.to else None
        return stamp if moment is None else replace(stamp, notes={**stamp.notes, "asof": f"{moment:.3f}"})

    def judged_shape(self) -> StructType:
        judged = self.judge.conformed(self.transformed(self._empty()))
        kept = [field for field in judged.schema if field.name not in HIDDEN]
        missing = set(self.keys) - {field.name for field in kept}
        if missing:
            raise DeclarationError(
                f"{self.name} lacks {', '.join(sorted(missing))}, the key of {self.followed.name}",
                why="a row that changes there must be found here",
                fix="keep the key columns in the function's result",
            )
        place = StructType([StructField(BATCH, LongType()), StructField(GONE, BooleanType())])
        return StructType([*kept, StructField(PLACE, place)])

    def transformed(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        made = transform(self.lake.spark, self.table, {name: frames[name] for name in self.inputs})
        if CARRIED in made.columns:
            return made
        return made.withColumn(CARRIED, struct(*map(quoted, made.columns)))  # a dead letter is then what was made

    def declared(self) -> DataFrame:
        return self.transformed(self._empty())

    def _empty(self) -> dict[str, DataFrame]:
        frames = {name: plain(self.lake.whole(name)).limit(0) for name in self.inputs}
        frames[self.driving] = self.carried(frames[self.driving])
        return frames


class DerivedBatch(KeyedBatch):
    def __init__(
        self,
        flow: DerivedFlow,
        frames: Mapping[str, DataFrame],
        span: Span,
        level: Level,
        last: DataFrame,
        news: DataFrame | None = None,
    ) -> None:
        """`news` are the keys that changed, when the batch looks everything up again."""
        self._last = last
        self._news = news
        super().__init__(flow, frames, span, level)
        if news is not None and self.counts["dead"]:
            self.counts = {**self.counts, "dead": self.letters().count()}

    def letters(self) -> DataFrame:
        """Of rows that were only looked up again, those that the table has had: the others have their letters."""
        found = super().letters()
        if self._news is None:
            return found
        keys = list(self._keyed.keys)
        had = self._keyed.lake.whole(self._keyed.name, self._at.state.id).select(*map(quoted, keys))
        return found.join(self._news.unionByName(had).distinct(), keys, "left_semi")

    def changes(self, number: int) -> DataFrame:
        keys = list(self._keyed.keys)
        passed = self.passed().select(*map(quoted, self._keyed.columns), lit(True).alias(_THERE))
        touched = self._last.select(*map(quoted, keys))
        # Several rows for one key: any fixed choice, the same in every attempt.
        passed = passed.dropDuplicates(keys)
        found = touched.join(passed, keys, "left")
        place = struct(lit(number).cast("bigint").alias(BATCH), col(_THERE).isNull().alias(GONE))
        return found.withColumn(PLACE, place).drop(_THERE)

    def rows(self, changes: DataFrame) -> DataFrame:
        # Changes come in order, so none has to be remembered that no row shows.
        return super().rows(changes).where(col(WEIGHT) != 0)

    @property
    def most(self) -> int:
        return self._span.rows

    def near(self, rows: DataFrame) -> DataFrame:
        return rows  # rows that are gone lie in no partition of the batch

    @cached_property
    def listed(self) -> list[Row]:
        if self.most > MOST_KEYS or not self._keyed.watch.exact:
            return []
        return self._last.select(*self.listing(col(quoted(self._keyed.keys[0])))).distinct().collect()


def last_changes(feed: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Each changed key with its row after the last change, and whether it is there at all."""
    if WEIGHT not in feed.columns:  # rows that are replayed
        feed = feed.withColumn(WEIGHT, lit(1)).withColumn(BATCH, lit(0))
    own = [one for one in feed.columns if one not in (WEIGHT, BATCH)]
    rows = feed.select(*map(quoted, keys), struct(*map(quoted, own)).alias(_ROW), WEIGHT, BATCH)
    last = rows.groupBy(*map(quoted, keys)).agg(
        expr(f"max_by(struct({_ROW}, {WEIGHT}), struct({BATCH}, {WEIGHT}))").alias("_last")
    )
    return last.select(*map(quoted, keys), col(f"_last.{_ROW}").alias(_ROW), (col(f"_last.{WEIGHT}") > 0).alias(_THERE))
