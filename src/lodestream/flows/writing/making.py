"""Silver rows: in one pass where nothing can be refused, else judged, counted and written."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from lodestream.flows.batch import Batch, Span
from lodestream.flows.code.declared import DeclaredInputs
from lodestream.flows.context import Context
from lodestream.flows.judging.judged_rows import JudgedRows
from lodestream.flows.judging.raising import raised_by_row
from lodestream.flows.judging.retention import Keep, NeedsWhole
from lodestream.flows.judging.terms import Contracted, Terms
from lodestream.flows.letters.envelope import records, source_marks
from lodestream.flows.letters.table import DeadLetters, Lettered
from lodestream.flows.parts import Intake, Making
from lodestream.flows.writing.filtered import FilteredBatch, TransformedBatch
from lodestream.flows.writing.home import SilverHome
from lodestream.flows.writing.judged import JudgedBatch
from lodestream.pipeline.definition import code_of
from lodestream.tables.notes import CODE


class SilverMaking(Making):
    """`careful` judges each row by itself, which finds those that declared code raises on.

    `keep` is how much of a large batch is kept between judging and writing.
    """

    def __init__(
        self, context: Context, kept: Contracted, home: SilverHome, intake: Intake, dead: DeadLetters,
        *, inputs: DeclaredInputs, careful: bool = False, keep: Keep = "verdicts",
    ) -> None:  # fmt: skip
        self._context = context
        self._kept = kept
        self._home = home
        self._intake = intake
        self._dead = dead
        self._inputs = inputs
        self._careful = careful
        self._keep = keep
        self._code = code_of(context.table)

    @property
    def terms(self) -> Terms:
        terms = self._kept.terms
        return terms.careful if self._careful else terms

    @property
    def steady(self) -> bool:
        """Whether a judged batch stays what it is when the table moves: then a replay need not judge again."""
        return self.terms.unique is None

    def make(self, span: Span) -> Batch:
        frames = self._inputs.read(span)
        if not self.terms.judges:
            return self._in_one_pass(frames, span)
        self._lettered(self._dead).settle()
        return self._judged(frames, span, self._dead, self._keep)

    def judged(self, frames: Mapping[str, DataFrame], span: Span, dead: DeadLetters) -> JudgedBatch:
        """The given inputs turned into rows and held against the contract; a replay gives the rows of dead letters."""
        return self._judged(frames, span, dead, "whole")

    def instead(self, error: Exception) -> Making | None:
        """A batch that is written in one pass is judged row by row after all when its code raises on a row; one that is
        made twice and was not the same, or raised the second time, is kept in between."""
        if isinstance(error, NeedsWhole):
            return self._careful_and("whole")
        if self.terms.judges or raised_by_row(error) is None or self._intake.explain(error) is not None:
            return None
        return self._careful_and(self._keep)

    def _careful_and(self, keep: Keep) -> SilverMaking:
        context, kept, home, intake, dead = self._context, self._kept, self._home, self._intake, self._dead
        return SilverMaking(context, kept, home, intake, dead, inputs=self._inputs, careful=True, keep=keep)

    def _judged(self, frames: Mapping[str, DataFrame], span: Span, dead: DeadLetters, keep: Keep) -> JudgedBatch:
        rows = JudgedRows(self.terms, frames, span, self._context.notices, self._intake.explain, keep=keep)
        return JudgedBatch(rows, self._lettered(dead))

    def notes(self) -> Mapping[str, str]:
        """Rows stay as the code of their time made them: the batch says which code that was."""
        return {CODE: self._code}

    def _in_one_pass(self, frames: Mapping[str, DataFrame], span: Span) -> Batch:
        lake, table, rows = self._context.lake, self._context.table, self.terms.rows
        # Rows about the source are no records, and only a judged batch counts them.
        counted = rows.accounts and source_marks(frames[rows.driving]) is None and not table.allow_no_rows
        least = span.rows if counted else 0
        made = rows.made({name: records(frame) for name, frame in frames.items()})
        if table.filters:
            return FilteredBatch(lake, table.name, made, table.filters, span.rows, least)
        return TransformedBatch(lake, table.name, made, span.rows, least)

    def _lettered(self, dead: DeadLetters) -> Lettered:
        return Lettered(dead, self._home.store, self.terms.title)
