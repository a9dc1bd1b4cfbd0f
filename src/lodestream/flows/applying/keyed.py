"""The parts of a keyed table while it runs: its home, how a batch of its feed is made, and how the feed is applied."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from lodestream.errors import LodeError, NotOurTable
from lodestream.flows.applying.opening import KeyedOpening, Opened
from lodestream.flows.batch import Batch, Facts, Outcome, Published, Span
from lodestream.flows.code.declared import DeclaredInputs
from lodestream.flows.context import Context
from lodestream.flows.judging.judged_rows import JudgedRows
from lodestream.flows.judging.retention import Keep
from lodestream.flows.judging.terms import Contracted, Terms
from lodestream.flows.letters.table import DeadLetters, Lettered
from lodestream.flows.parts import After, Home, Intake, Making
from lodestream.flows.writing.derived import FollowedChanges, followed
from lodestream.flows.writing.feed_rows import Changes, FeedBatch, JudgedChanges, Keeping
from lodestream.flows.writing.siblings import Level
from lodestream.pipeline.definition import code_of
from lodestream.sources.table.changes import KeyedChanges
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.notes import CODE
from lodestream.tables.snapshot import position_in
from lodestream.tables.store import TableStore


class KeyedHome(Home):
    """`opening` makes the table and its siblings, and brings them to their contract."""

    def __init__(self, context: Context, kept: Contracted, opening: KeyedOpening) -> None:
        self._context = context
        self._kept = kept
        self._opening = opening
        self._opened: Opened | None = None

    @property
    def opened(self) -> Opened:
        if self._opened is None:
            raise RuntimeError("open() first")
        return self._opened

    @property
    def store(self) -> IcebergStore:
        return self.opened.feed

    def open(self, *, guest: bool = False) -> IcebergStore:
        lake, name, promise = self._context.lake, self._context.name, self._kept.promise
        if promise is not None:
            promise.check(lake, name)
        self._opened = self._opening.open(self._kept.terms)
        if promise is not None and not guest:
            promise.record(lake.store(name))
        return self.store

    def follow_edits(self, *, opened: bool) -> None:
        edit = self._kept.edited()
        if edit is None:
            return
        lake, name = self._context.lake, self._context.name
        if opened:
            if edit.promise is not None:
                edit.promise.check(lake, name)
            self._opening.evolve(self._kept.terms.contract, edit.contract)
            if edit.promise is not None:
                edit.promise.record(lake.store(name))
            self._opened = self._opening.open(edit.terms)
        self._kept.agree(edit)

    def leave(self) -> None:
        """A guest goes: what it published is applied, and its branches are dropped."""
        self.opened.follower.catch_up()
        self.opened.follower.leave()

    def refuse_adoption(self) -> LodeError | None:
        return NotOurTable(
            f"{self._context.name} holds rows that no change feed explains",
            why="the rows of a keyed table are its feed applied, and rows from elsewhere are in no feed",
            fix="rename or drop the table; its input fills it again",
        )


class ApplyFeed(After):
    """After the feed is published it is applied to the table, before the next batch at the latest.

    A crash between the feed and the table leaves the table behind: the first step after it catches up.
    """

    def __init__(self, home: KeyedHome) -> None:
        self._home = home
        self._behind = True

    def expect(self) -> None:
        """A batch that looks at nothing is on its way to the feed."""
        self._behind = True

    def catch_up(self) -> Level:
        """Before a batch is made: it is built on a table that has applied the whole feed."""
        self._behind = True
        return self._home.opened.follower.catch_up()

    def follow(self, outcome: Outcome | None) -> Published | None:
        if outcome is None and not self._behind:
            return None
        self._behind = True  # until it is done: what fails below is tried again by the next step
        began = time.perf_counter()
        facts = outcome.facts if outcome else None
        level = self._home.opened.follower.catch_up({outcome.published.snapshot: facts} if outcome and facts else {})
        self._behind = False
        if outcome is not None and facts is not None:
            self._note_keys(facts, outcome.published.snapshot, level)
        seconds = time.perf_counter() - began
        if outcome is None:
            return self._caught_up(level, seconds) if level.steps else None
        done = outcome.published
        return replace(done, seconds={**done.seconds, "apply": seconds, "total": done.seconds["total"] + seconds})

    def _note_keys(self, facts: Facts, snapshot: int, level: Level) -> None:
        siblings = self._home.opened.siblings
        position = position_in(level.state, siblings.feed)
        if position is not None and int(position["snapshot"]) == snapshot:
            siblings.directory.follow(facts, level.state)
            # The marks only grow.
            marks = Facts(came=facts.marks, state=facts.marks_state, entries=facts.remembered)
            siblings.marked.follow(marks, level.marks)

    def _caught_up(self, level: Level, seconds: float) -> Published | None:
        """The table had been behind its feed, from before a crash: its readers have something new."""
        stamp = level.state.stamp
        if stamp is None:
            return None
        rows = {"in": 0, "out": level.state.added_rows}
        spent = {"apply": seconds, "total": seconds}
        table = self._home.opened.siblings.table
        return Published(table, stamp.batch, level.state.id, stamp.positions, rows, 0, True, spent)


class KeyedMaking(Making):
    """A span judged, put in order per key, and weighed against what the table holds.

    `follows` is the keyed table that this one is made from, if it is.
    """

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
        siblings = self._home.opened.siblings
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
