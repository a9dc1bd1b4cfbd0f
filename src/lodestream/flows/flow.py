"""The one flow: where am I, what is new, make, stage, audit, publish, and what follows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import final

from lodestream.errors import AnotherWriter, LodeError
from lodestream.failpoints import reach
from lodestream.flows.batch import Batch, Outcome, Published, Span
from lodestream.flows.context import Context
from lodestream.flows.parts import Making, Parts, Positions
from lodestream.observe import Event
from lodestream.tables.notes import ACCEPTED_GAP, ADOPTED, ASOF
from lodestream.tables.publish import Base, Moved, Staged, Writer, until_published
from lodestream.tables.snapshot import Stamp
from lodestream.tables.store import last_stamp


@final
class Flow:
    """Keeps one table up to date. `prepare` once, then `step` as often as there is something new."""

    __slots__ = ("_context", "_positions", "_writer", "at_work", "lake", "name", "parts", "run", "table")

    def __init__(self, context: Context, parts: Parts) -> None:
        self.lake, self.table, self.run, self.name = context.lake, context.table, context.run, context.name
        self.parts = parts
        # Whether a batch is being made right now: what can wait then does.
        self.at_work = False
        self._context = context
        self._writer: Writer | None = None
        self._positions: Positions | None = None

    def prepare(self) -> None:
        """Open the table, making it when it is missing."""
        self._writer = Writer(self.parts.home.open(), self.run)
        self._writer.sweep()

    def step(self, rows: int) -> Published | None:
        """Publish one batch of about `rows` rows at most; None when nothing is new."""
        self.parts.home.follow_edits(opened=self._writer is not None)
        if self._writer is None:
            if not self.parts.intake.ready():
                self._refuse_gone()
                return None
            self.prepare()
        return self._followed(until_published(self.name, lambda: self._next_batch(rows)))

    def take_notices(self) -> list[Event]:
        """What was noticed since the last call."""
        return self._context.notices.take()

    def explain(self, error: Exception) -> LodeError | None:
        """Our error inside what came out of a batch, when a part of the flow knows it."""
        return self.parts.making.explain(error) or self.parts.intake.explain(error)

    def accept_gap(self) -> Published:
        """Record in the table that a person accepted a broken source, and go on from what is left of it."""
        if self._writer is None:
            self.prepare()
        base = self.writer.begin()
        since = dict(base.stamp.positions) if base.stamp else {}
        span = Span(since, self.parts.intake.accepted(since), 0, previous=base.stamp)
        return self._decided(base, span, ACCEPTED_GAP)

    def adopt(self) -> Published:
        """Take over a table that holds data and no positions: its rows stay, ours begin where the source starts."""
        refused = self.parts.home.refuse_adoption()
        if refused is not None:
            raise refused
        base = self.writer.begin(adopt=True)
        return self._decided(base, Span({}, self.parts.intake.starts(), 0), ADOPTED)

    def close(self) -> None:
        self.parts.intake.close()

    @property
    def writer(self) -> Writer:
        if self._writer is None:
            raise RuntimeError("prepare() first")
        return self._writer

    def _next_batch(self, rows: int) -> Outcome | None:
        began = time.perf_counter()
        intake, known = self.parts.intake, self._positions
        latest = intake.look()
        if latest is None:
            self._refuse_gone()
        if latest is None or (known is not None and not intake.news(known, latest)):
            return None
        base = self.writer.begin()
        if base.stamp is not None and base.stamp.positions != known:
            # Another run may have read further than our look: to it, the source would seem to have shrunk.
            latest = intake.look()
        self._positions = None
        outcome = self._taken(base, latest, rows, began) if latest is not None else None
        if outcome is not None:
            self._positions = outcome.published.positions
        elif base.stamp is not None:
            self._positions = base.stamp.positions
        return outcome

    def _taken(self, base: Base, latest: Positions, rows: int, began: float) -> Outcome | None:
        if self.parts.taking is not None:
            return self.parts.taking.take(base, latest, rows, partial(self._run_batch, base, began))
        span = self.parts.intake.span(base.stamp, latest, rows)
        return self._run_batch(base, began, span) if span is not None else None

    def _followed(self, outcome: Outcome | None) -> Published | None:
        published = outcome.published if outcome else None
        for part in self.parts.after:
            published = part.follow(outcome) or published
        return published

    def _decided(self, base: Base, span: Span, decision: str) -> Published:
        """What follows is left to the next step: a decision that is published counts, whatever comes after it."""
        return self._run_batch(base, time.perf_counter(), span, decision).published

    def _run_batch(self, base: Base, began: float, span: Span, decision: str | None = None) -> Outcome:
        reach("plan.after", self.name)
        began = time.perf_counter() if span.given is not None else began  # Spark's own planning is no work of ours
        if self.parts.gate is not None and self.parts.gate.let_pass(self.writer.store):
            raise Moved(self.name)
        self.at_work = True
        try:
            outcome = self._made(base, began, span, decision)
        finally:
            self.at_work = False
        if self.parts.gate is not None:
            self.parts.gate.took(outcome.published.seconds["total"])
        return outcome

    def _made(self, base: Base, began: float, span: Span, decision: str | None) -> Outcome:
        making = self.parts.making
        try:
            return self._publish(making, base, began, span, decision)
        except Exception as error:
            instead = making.instead(error)
            if instead is None:
                raise
        return self._publish(instead, base, began, span, decision)

    def _publish(self, making: Making, base: Base, began: float, span: Span, decision: str | None) -> Outcome:
        self._context.tuning.fit(span.rows)
        batch = making.make(span) if span.rows else making.empty(span, self.writer.store)
        try:
            made = time.perf_counter()
            stamp = self._stamp(base, span, batch, making, decision)
            batch.companions(stamp, base.main_version)
            reach("companions.after", self.name)
            stamp = replace(stamp, notes={**stamp.notes, **batch.notes()})
            staged = self.writer.stage(base, stamp, batch.write)
            wrote = time.perf_counter()
            self.parts.intake.confirm(span.to)
            self._audit(batch, staged)
            self.writer.publish(staged)
            done = time.perf_counter()
            batch.tidy(lost=False)
        except AnotherWriter:
            batch.tidy(lost=True)
            raise
        finally:
            batch.release()
        seconds = {"make": made - began, "stage": wrote - made, "publish": done - wrote, "total": done - began}
        return Outcome(self._told(staged, span, batch, seconds), base, batch.facts())

    def _told(self, staged: Staged, span: Span, batch: Batch, seconds: Mapping[str, float]) -> Published:
        stamp, snapshot = staged.stamp, staged.snapshot
        rows = {"out": snapshot.added_rows, **batch.counts}
        size = int(snapshot.summary.get("added-files-size", "0"))
        return Published(self.name, stamp.batch, snapshot.id, stamp.positions, rows, size, span.caught_up, seconds)

    def _audit(self, batch: Batch, staged: Staged) -> None:
        try:
            batch.audit(staged.snapshot)
        except LodeError as refused:
            branch = self.writer.keep_for_inspection(staged)
            refused.fix = f"{refused.fix or ''}; the batch is kept: read {self.name}.branch_{branch}".lstrip("; ")
            raise

    def _stamp(self, base: Base, span: Span, batch: Batch, making: Making, decision: str | None) -> Stamp:
        notes = dict(making.notes())
        if decision:
            notes[decision] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        asof = self.parts.intake.asof(span.to)
        if asof is None and base.stamp is not None:
            asof = base.stamp.asof
        if asof is not None:
            notes[ASOF] = f"{asof:.3f}"
        number = base.stamp.batch + 1 if base.stamp else 1
        return Stamp(self.name, self.run, number, span.to, span.since, batch.counts, notes)

    def _refuse_gone(self) -> None:
        """A source that does not exist is late, unless we have read from it: then it is gone."""
        stamp = last_stamp(self.lake.store(self.name)) if self.lake.exists(self.name) else None
        if stamp is not None:
            self.parts.intake.refuse_gone(stamp.positions)


__all__ = ["Batch", "Flow", "Published", "Span"]
