"""The rows of a batch, judged once and counted: which enter the table, which are dead letters, which are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql.functions import array, col, count, count_distinct, count_if, lit, size, struct

from lodestream.errors import AuditFailed, LodeError
from lodestream.failpoints import reach
from lodestream.flows.batch import Span
from lodestream.flows.columns.pruning import Pruning
from lodestream.flows.context import Notices
from lodestream.flows.judging.duplicates import KeySearch
from lodestream.flows.judging.raising import Raising, raised_by_row
from lodestream.flows.judging.retention import Keep, Retention, claimed, lean
from lodestream.flows.judging.suspects import alone, find_suspects, unsteady, without
from lodestream.flows.judging.terms import Terms
from lodestream.flows.letters.envelope import event_coordinates, records, source_marks, with_beside
from lodestream.names import CARRIED, ERROR, FILTERED, REASONS, WARNED
from lodestream.observe import FieldUnknown
from lodestream.sources.kinds import order_columns

# Batches up to this many rows are kept whole.
MOST_WHOLE = 50_000
# Above this many rows what is kept goes to disk, so that memory does not follow the size of a batch.
_MOST_IN_MEMORY = 50_000
# Rows that raise are looked for this often: a second time when the first search has hidden others.
_MOST_SEARCHES = 3
EVENTS = "events"


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
        self._retained = self._retention(keep)
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
        return self._retained is not None and self._retained.again

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

    def _retention(self, keep: Keep) -> Retention | None:
        """How the batch is kept; None: as it is. Few rows are, and where other rows decide what becomes of a row."""
        terms, rows = self.terms, self._span.rows
        if keep == "whole" or rows <= MOST_WHOLE or terms.unique is not None or terms.rows.multiplies:
            return None
        return lean(keep, terms, rows, self.claiming)

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


def events(carried: object) -> list[Column]:
    """An aggregate that counts the events which rows with this `_lode` came from; none where they have none."""
    coordinates = event_coordinates(carried)
    return [count_distinct(coordinates).alias(EVENTS)] if coordinates is not None else []


def unaccounted(table: str, lost: int, rows: int) -> AuditFailed:
    return AuditFailed(
        f"{table}: {lost:,} of {rows:,} input rows are unaccounted for",
        why="the function dropped rows that neither a filter nor the contract explains",
        fix="declare the condition: filters={'name': 'rows to keep'}; where an event may give no row, as with an "
        "explode of an empty list, allow_no_rows=True counts it and explode_outer keeps it as a row",
    )


class Verdicts:
    """The rows of a batch with what speaks against each, those included that never became rows of the table.

    What it keeps for that, as `retained` says or as it is, is there until `release`.
    """

    def __init__(
        self, terms: Terms, rows: int, retained: Retention | None, explain: Callable[[Exception], LodeError | None]
    ) -> None:
        """`explain` gives the error that a source knows: then no row is to blame."""
        self._terms = terms
        self._retained = retained
        self._explain = explain
        self._kept: list[DataFrame] = []
        self._level = StorageLevel.MEMORY_AND_DISK if rows <= _MOST_IN_MEMORY else StorageLevel.DISK_ONLY

    def read(self, frames: Mapping[str, DataFrame]) -> None:
        """The rows that the function gets, and beside them those that could not be decoded."""
        made, self._given = self._terms.rows, {name: records(frame) for name, frame in frames.items()}
        given = frames[made.driving]
        self._undecoded: DataFrame | None = None
        self._marks = source_marks(given)
        if made.decode is None:
            self._source = made.carried(records(given))
            return
        decoded = made.decode(records(given))
        if self._retained is None:
            self.keep(decoded)
        self._source = decoded.where(col(ERROR).isNull()).drop(ERROR)
        self._undecoded = decoded.where(col(ERROR).isNotNull())

    def judged(self, count: Callable[[DataFrame], Row]) -> tuple[DataFrame, DataFrame, Row]:
        """The rows, what is kept of them, and the counts.

        Rows on which declared code raises are dead letters, and the others are judged again.
        """
        raising: list[Raising] = []
        retained = self._retained
        for _ in range(_MOST_SEARCHES):
            judged = self._verdicts(raising)
            kept = self.keep(judged if retained is None else retained.frame(judged))
            try:
                seen = count(kept)
                # Rows that never became columns pass in no case: nobody decodes everything again to look for them.
                return (self._rows(raising) if retained is not None and retained.again else kept), kept, seen
            except Exception as error:
                kept.unpersist()
                raising += self._search(error, raising)
                failed = error
        raise unsteady(self._terms.name, failed) from failed

    def keep(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist(self._level))
        return frame

    def release(self) -> None:
        for frame in self._kept:
            frame.unpersist()

    def _search(self, error: Exception, known: Sequence[Raising]) -> list[Raising]:
        reason = raised_by_row(error)
        if reason is None or self._explain(error) is not None:
            raise error
        rest = without(self._source, known) if known else self._source
        return find_suspects(self._terms.name, rest, self._conformed, error, reason)

    def _verdicts(self, raising: Sequence[Raising]) -> DataFrame:
        judged = self._rows(raising)
        if raising:
            judged = _beside(judged, *alone(self._source, raising, discreet=self._terms.judge.masks))
        if self._marks is not None:
            raw = struct(*[col(name) for name in self._marks.columns]).alias(CARRIED)
            judged = _beside(judged, self._marks.select(raw), array(), filtered=lit("not a record"))
        return judged if self._undecoded is None else _beside(judged, self._undecoded, array(col(ERROR)))

    def _rows(self, raising: Sequence[Raising]) -> DataFrame:
        return self._conformed(without(self._source, raising) if raising else self._source)

    def _conformed(self, source: DataFrame) -> DataFrame:
        made = self._terms.rows
        return self._terms.judge.conformed(made.made({**self._given, made.driving: source}))


def _beside(judged: DataFrame, broken: DataFrame, reasons: Column, filtered: Column | None = None) -> DataFrame:
    """Rows that never became columns of the table: only their raw form and the reasons are known."""
    known = {CARRIED: col(CARRIED), REASONS: reasons, WARNED: array()}
    known |= {FILTERED: filtered} if filtered is not None else {}
    columns = [known.get(one.name, lit(None)).cast(one.dataType).alias(one.name) for one in judged.schema]
    return judged.unionByName(broken.select(*columns))
