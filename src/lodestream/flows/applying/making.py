"""The rows of a keyed table's feed: judged, put in order per key, and weighed against what the table holds."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from lodestream.flows.applying.apply import ApplyFeed
from lodestream.flows.applying.home import KeyedHome
from lodestream.flows.batch import Batch, Span
from lodestream.flows.code.declared import DeclaredInputs
from lodestream.flows.context import Context
from lodestream.flows.judging.judged_rows import JudgedRows
from lodestream.flows.judging.retention import Keep
from lodestream.flows.judging.terms import Contracted, Terms
from lodestream.flows.letters.table import DeadLetters, Lettered
from lodestream.flows.parts import Intake, Making
from lodestream.flows.writing.derived import FollowedChanges, followed
from lodestream.flows.writing.feed_rows import Changes, FeedBatch, JudgedChanges, Keeping
from lodestream.pipeline.definition import code_of
from lodestream.sources.table.changes import KeyedChanges
from lodestream.tables.notes import CODE
from lodestream.tables.store import TableStore


class KeyedMaking(Making):
    """`follows` is the keyed table that this one is made from, if it is."""

    def __init__(
        self, context: Context, kept: Contracted, home: KeyedHome, intake: Intake, dead: DeadLetters,
        *, inputs: DeclaredInputs, applying: ApplyFeed, keeping: Keeping, follows: KeyedChanges | None = None,
    ) -> None:  # fmt: skip
        self._context = context
        self._kept = kept
        self._home = home
        self._intake = intake
        self._dead = dead
        self._inputs = inputs
        self._applying = applying
        self._keeping = keeping
        self._follows = follows
        self._code = code_of(context.table)

    @property
    def terms(self) -> Terms:
        return self._kept.terms

    @property
    def steady(self) -> bool:
        """A change is held against the rows that its key has: when the table moves, a replay judges again."""
        return False

    def make(self, span: Span) -> Batch:
        frames = self._inputs.read(span)
        self._lettered(self._dead).settle()
        return self._judged(frames, span, self._dead, "columns")

    def empty(self, span: Span, store: TableStore) -> Batch:
        self._applying.expect()
        return super().empty(span, store)

    def judged(self, frames: Mapping[str, DataFrame], span: Span, dead: DeadLetters) -> FeedBatch:
        """The given inputs as changes; a replay gives the rows of dead letters."""
        return self._judged(frames, span, dead, "whole")

    def _judged(self, frames: Mapping[str, DataFrame], span: Span, dead: DeadLetters, keep: Keep) -> FeedBatch:
        siblings = self._home.siblings()
        changes: Changes = JudgedChanges(siblings)
        if self._follows is not None:
            now = followed(frames, span, self._inputs, self._follows, siblings.keys)
            if now.span.rows != span.rows:
                self._context.tuning.fit(now.span.rows)
            frames, span, changes = now.frames, now.span, FollowedChanges(siblings, now)
        level = self._applying.catch_up()
        rows = JudgedRows(
            self.terms, frames, span, self._context.notices, self._intake.explain,
            claiming=changes.claiming, measures=changes.measures(span.rows), keep=keep,
        )  # fmt: skip
        return FeedBatch(rows, changes, self._keeping, siblings, level, self._lettered(dead))

    def notes(self) -> Mapping[str, str]:
        """Rows stay as the code of their time made them: the batch says which code that was."""
        return {CODE: self._code}

    def _lettered(self, dead: DeadLetters) -> Lettered:
        return Lettered(dead, self._home.store, self.terms.title)
