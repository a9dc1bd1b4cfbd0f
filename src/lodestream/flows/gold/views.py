"""The inputs of one Gold batch as the views that a plan reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from lodestream.flows.batch import Span
from lodestream.flows.context import SMALL
from lodestream.names import WEIGHT
from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.plan import feed_view, now_view
from lodestream.sources.table import TableInput
from lodestream.tables.find import same_again, set_aside

# Values of these types survive the way through Python unchanged, so a filter on them loses no row.
_EXACT = (ByteType, ShortType, IntegerType, LongType, StringType, DateType, DecimalType)
_MOST_KEYS = 5_000
_MOST_LISTED = 200


class Inputs:
    """The inputs of one batch: what they are now, what changed in them."""

    def __init__(self, spark: SparkSession, sources: Sequence[TableInput], span: Span) -> None:
        self._spark = spark
        self._sources = {source.name: source for source in sources}
        self._span = span

    @property
    def changed(self) -> list[str]:
        return [name for name in self._sources if self._span.since[name] != self._span.to[name]]

    def comparable(self) -> bool:
        since, to = self._span.since, self._span.to
        return all(self._sources[name].comparable(since[name], to[name]) for name in self.changed)

    def now(self, name: str) -> DataFrame:
        return self._sources[name].now(self._span.to[name])

    def changes(self, name: str) -> DataFrame:
        """The weighted rows of this batch; few of them come in one partition, which needs no shuffle to be grouped."""
        source, to = self._sources[name], self._span.to[name]
        if name not in self.changed:
            return source.now(to).limit(0).withColumn(WEIGHT, lit(1))
        found = source.changes(self._span.since[name], to)
        return found.coalesce(1) if self._span.rows <= SMALL else found

    def show(self, names: Iterable[str] | None = None, *, only: Mapping[str, Column] | None = None) -> None:
        """Both views of each input; `only` narrows what is read of its state."""
        for name in names or self._sources:
            self.changes(name).createOrReplaceTempView(feed_view(name))
            self.show_now(name, (only or {}).get(name))

    def show_now(self, name: str, only: Column | None = None) -> None:
        rows = self.now(name)
        (rows if only is None else rows.where(only)).createOrReplaceTempView(now_view(name))


class Keys:
    """The keys that a batch touches, computed once and kept apart from the tables they were read from."""

    def __init__(self, rows: DataFrame) -> None:
        self.rows = set_aside(rows)
        self._sample: list[Row] | None = None
        with suppress(ValueError, OverflowError):  # a date that Python has no value for
            self._sample = self.rows.limit(_MOST_KEYS + 1).collect()

    @property
    def none(self) -> bool:
        return self.rows.isEmpty() if self._sample is None else not self._sample

    def condition(self, pairs: Iterable[tuple[str, str]]) -> Column | None:
        """A filter that lets every row with a touched key through, so that files without one are skipped.

        `pairs` are (column to filter, key column).
        """
        if self._sample is None or len(self._sample) > _MOST_KEYS:
            return None
        found: Column | None = None
        for column, key in pairs:
            one = self._among(self._sample, column, key)
            if one is not None:
                found = one if found is None else found & one
        return found

    def _among(self, sample: Sequence[Row], column: str, key: str) -> Column | None:
        if not _exact(self.rows.schema[key].dataType):
            return None
        values = {row[key] for row in sample}
        known = sorted(value for value in values if value is not None)
        if not same_again(known):
            return None
        target = col(quoted(column))
        if not known:
            return target.isNull()
        one = target.isin(known) if len(known) <= _MOST_LISTED else target.between(known[0], known[-1])
        return one | target.isNull() if None in values else one


def _exact(kind: DataType) -> bool:
    return isinstance(kind, _EXACT)
