"""The rows of a Silver batch with what speaks against each, those included that never became rows of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql.functions import array, col, lit, struct

from lodestream.errors import LodeError
from lodestream.flows.judging.raising import Raising, raised_by_row
from lodestream.flows.judging.retention import Retention
from lodestream.flows.judging.suspects import alone, find_suspects, unsteady, without
from lodestream.flows.judging.terms import Terms
from lodestream.flows.letters.envelope import records, source_marks
from lodestream.names import CARRIED, ERROR, FILTERED, REASONS, WARNED

# Above this many rows what is kept goes to disk, so that memory does not follow the size of a batch.
_MOST_IN_MEMORY = 50_000
# Rows that raise are looked for this often: a second time when the first search has hidden others.
_MOST_SEARCHES = 3


class Verdicts:
    """Judges the rows of a batch; what it keeps for that, as `retained` says, is there until `release`."""

    def __init__(
        self, terms: Terms, rows: int, retained: Retention, explain: Callable[[Exception], LodeError | None]
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
        if self._retained.whole:
            self.keep(decoded)
        self._source = decoded.where(col(ERROR).isNull()).drop(ERROR)
        self._undecoded = decoded.where(col(ERROR).isNotNull())

    def judged(self, count: Callable[[DataFrame], Row]) -> tuple[DataFrame, DataFrame, Row]:
        """The rows, what is kept of them, and the counts.

        Rows on which declared code raises are dead letters, and the others are judged again.
        """
        raising: list[Raising] = []
        for _ in range(_MOST_SEARCHES):
            kept = self.keep(self._retained.frame(self._verdicts(raising)))
            try:
                seen = count(kept)
                # Rows that never became columns pass in no case: nobody decodes everything again to look for them.
                return (self._rows(raising) if self._retained.again else kept), kept, seen
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
