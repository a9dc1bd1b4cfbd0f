"""The rows of a batch, judged once and counted: which enter the table, which are dead letters, which are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql.functions import col, count, count_if, lit, size

from lodestream.errors import LodeError
from lodestream.failpoints import reach
from lodestream.flows.batch import Span
from lodestream.flows.columns.pruning import Pruning
from lodestream.flows.context import Notices
from lodestream.flows.judging.accounting import EVENTS, events, unaccounted, with_beside
from lodestream.flows.judging.duplicates import KeySearch
from lodestream.flows.judging.retention import Keep, claimed, retention
from lodestream.flows.judging.terms import Terms
from lodestream.flows.judging.verdicts import Verdicts
from lodestream.names import CARRIED, FILTERED, REASONS, WARNED
from lodestream.observe import FieldUnknown
from lodestream.sources.kinds import order_columns


def passed() -> Column:
    """Rows that nothing speaks against."""
    return (size(REASONS) == 0) & col(FILTERED).isNull()


class JudgedRows:
    """`rows` are those of the table with their verdict: `_reasons`, `_filtered`, `_warned` and the raw row.

    `verdicts` is what is kept of every row of the batch, `seen` are the counts. `claiming` rows bring their values to
    the table. `measures` are what else the one counting job shall tell.
    """

    def __init__(
        self,
        terms: Terms,
        frames: Mapping[str, DataFrame],
        span: Span,
        notices: Notices,
        explain: Callable[[Exception], LodeError | None],
        *,
        claiming: Column | None = None,
        measures: Sequence[Column] = (),
        keep: Keep = "whole",
    ) -> None:
        self.terms = terms
        self._span = span
        self._measures = measures
        self.claiming = passed() if claiming is None else claiming
        self._retained = retention(keep, terms, span.rows, self.claiming)
        self._verdicts = Verdicts(terms, span.rows, self._retained, explain)
        try:
            self._verdicts.read(frames)
            self.rows, self.verdicts, self.seen = self._verdicts.judged(self._count)
            self._refuse_taken()
            reach("judge.after", terms.name)
        except BaseException:
            self.release()  # nobody else can: a batch that failed here does not exist yet
            raise
        self.counts = self._counts(notices)

    @property
    def made_again(self) -> bool:
        """Whether `rows` are made a second time: then they are held against what was counted."""
        return self._retained.again

    def letters(self) -> DataFrame:
        """The rows that are dead letters."""
        dead, terms = self.verdicts.where(size(REASONS) > 0), self.terms
        multiplies = not terms.keys and terms.rows.multiplies
        return with_beside(dead, lambda: self.rows.where(self.claiming), keyed=bool(terms.keys), multiplies=multiplies)

    def account(self) -> None:
        """Raise when input rows have vanished in declared code."""
        if self._vanished > 0 and not self.terms.table.allow_no_rows:
            raise unaccounted(self.terms.name, self._vanished, self._span.rows)

    def search(self) -> KeySearch:
        """What the batch wants to know of its keys."""
        return KeySearch(tuple(self.terms.keys), self.bound, self.near, self.terms.directory.addresses)

    def positions(self) -> list[Column]:
        """Where a row stands in its source; none for rows of another table."""
        raw = self.rows.select(f"{CARRIED}.*").columns
        return [col(f"{CARRIED}.{name}") for name in order_columns() if name in raw]

    def keep(self, frame: DataFrame) -> DataFrame:
        """Keep these rows until `release`."""
        return self._verdicts.keep(frame)

    def release(self) -> None:
        self._verdicts.release()

    @property
    def _vanished(self) -> int:
        """How many rows of the input gave none."""
        if not self.terms.rows.accounts:
            return 0
        return self._span.rows - int(self.seen[EVENTS] if EVENTS in self.seen else self.seen["in"])

    def _counts(self, notices: Notices) -> Mapping[str, int]:
        counts = {name: int(self.seen[name] or 0) for name in ("in", "dead", "filtered", "warned", "kept")}
        if self.terms.table.allow_no_rows and self._vanished > 0:
            counts["no_rows"] = self._vanished
        unknown = self.terms.unknown.count(self.seen)
        if unknown and (names := self.terms.unknown.news(self.seen)):
            notices.add(FieldUnknown(fields=tuple(names), rows=unknown["unknown"]))
        return {**counts, **unknown}

    def _refuse_taken(self) -> None:
        """Rows whose unique values others have: known only when every row of the batch has been judged by itself."""
        unique = self.terms.unique
        if unique is None or not self.seen["kept"]:
            return
        stored = self.terms.rows.lake.whole(self.terms.name)
        rows = unique.refused(self.rows, self.claiming, stored, self.bound, self.positions(), self.seen)
        self.rows = self.verdicts = self._verdicts.keep(rows)
        self.seen = self._count(self.rows)

    def _count(self, judged: DataFrame) -> Row:
        """One job counts everything and finds the partitions that the rows lie in."""
        terms, dead, filtered = self.terms, size(REASONS) > 0, col(FILTERED).isNotNull()
        self.bound, self.near = (Pruning.over(some, judged.schema) for some in (terms.bound, terms.near))
        declared, rows = terms.rows, self._span.rows
        counted = judged.agg(
            count(lit(1)).alias("in"),
            count_if(dead).alias("dead"),
            count_if(~dead & filtered).alias("filtered"),
            count_if(~dead & ~filtered).alias("kept"),
            count_if(~dead & ~filtered & (size(WARNED) > 0)).alias("warned"),
            *(events(judged.schema[CARRIED].dataType) if declared.accounts and declared.multiplies else []),
            *terms.unknown.aggregates(rows),
            *(terms.unique.values(judged, rows, self.claiming) if terms.unique else []),
            *(self.search().columns(judged, rows, self.claiming) if terms.dedups and not self.made_again else []),
            *(claimed(self.claiming) if self.made_again else []),
            *self.near.touched(),
            *self._measures,
        )
        return counted.collect()[0]
