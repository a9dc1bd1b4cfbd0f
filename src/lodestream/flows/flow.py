"""What every flow does with a batch: where am I, what is new, stage, audit, publish."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lodestream.errors import AnotherWriter, CatalogUnavailable, LodeError
from lodestream.failpoints import reach
from lodestream.flows.batch import Batch, NoRows, Published, Span, published
from lodestream.flows.lookout import Lookout
from lodestream.flows.promise import Promise
from lodestream.flows.tuning import Tuning
from lodestream.pipeline import Table
from lodestream.sources.source import Position, Source
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake
from lodestream.tables.positions import last_stamp
from lodestream.tables.publish import Base, Moved, Staged, Writer
from lodestream.tables.snapshot import Stamp

# Maintenance may move `main` under a batch now and then; losing to it this often means something is wrong.
_MOST_REDOS = 20


class Flow(ABC):
    """Keeps one table up to date. `prepare` once, then `step` as often as there is something new.

    The lake's session belongs to this flow alone: its settings follow the size of each batch.
    """

    def __init__(self, lake: Lake, table: Table, run: str, sources: Sequence[Source]) -> None:
        self.lake = lake
        self.table = table
        self.run = run
        self.name = table.name
        self.sources = tuple(sources)
        self.promise: Promise | None = None
        # Whether a batch is being made right now: what can wait then does.
        self.at_work = False
        self._tuning = Tuning(lake.spark)
        self._writer: Writer | None = None
        self._notices: list[tuple[str, dict[str, Any]]] = []
        self._positions: Mapping[str, Position] | None = None

    @abstractmethod
    def create(self) -> IcebergStore:
        """Open the table, making it when it is missing."""

    @abstractmethod
    def make(self, span: Span) -> Batch:
        """Read the span and turn it into rows of this table."""

    def ready(self) -> bool:
        """Whether every input exists, so that the table can be made."""
        return all(source.latest() is not None for source in self.sources)

    def prepare(self) -> None:
        if self.promise is not None:
            self.promise.check(self.lake, self.name)
        store = self.create()
        if self.promise is not None:
            self.promise.record(store)
        self._writer = Writer(store, self.run)
        self._writer.sweep()

    def step(self, rows: int) -> Published | None:
        """Publish one batch of about `rows` rows at most; None when nothing is new."""
        if self._writer is None:
            if not self.ready():
                self._still_there()
                return None
            self.prepare()
        return self.until_published(lambda: self._next_batch(rows))

    def until_published(self, attempt: Callable[[], Published | None]) -> Published | None:
        """An attempt that maintenance, a guest or a rollback overtook is made again, on the new head."""
        for _ in range(_MOST_REDOS):
            try:
                return attempt()
            except Moved as moved:
                last = moved
        raise CatalogUnavailable(
            f"{self.name} moved under {_MOST_REDOS} attempts at one batch",
            why=last.why or "maintenance or a rollback changed the table each time before the batch could be published",
            fix=last.fix,
        )

    def _next_batch(self, rows: int) -> Published | None:
        began = time.perf_counter()
        latest = self._lookout.look()
        if latest is None:
            self._still_there()
        if latest is None or (self._positions is not None and not self._lookout.news(self._positions, latest)):
            return None
        base = self.writer.begin()
        if base.stamp is not None and base.stamp.positions != self._positions:
            # Another run may have read further than our look: to it, the source would seem to have shrunk.
            latest = self._lookout.look()
        span = self._span(base, latest, rows) if latest is not None else None
        if span is None:
            self._positions = base.stamp.positions if base.stamp else None
            return None
        reach("plan.after", self.name)
        self._positions = None
        published = self._run_batch(base, span, began)
        self._positions = published.positions
        return published

    @property
    def writer(self) -> Writer:
        if self._writer is None:
            raise RuntimeError("prepare() first")
        return self._writer

    @property
    def _lookout(self) -> Lookout:
        return Lookout(self.sources, self.drives)

    def notice(self, event: str, **facts: Any) -> None:
        """Something that the run's log should say of this table."""
        self._notices.append((event, facts))

    def take_notices(self) -> list[tuple[str, dict[str, Any]]]:
        """What was noticed since the last call."""
        taken, self._notices = self._notices, []
        return taken

    def drives(self, source: Source) -> bool:
        """Whether news from this source alone start a batch; lookups do not."""
        return True

    def explain(self, error: Exception) -> LodeError | None:
        """Our error inside what came out of a batch, when one of the sources knows it."""
        return next((known for source in self.sources if (known := source.explain(error))), None)

    def accept_gap(self) -> Published:
        """Record in the table that a person accepted a broken source, and go on from what is left of it."""
        if self._writer is None:
            self.prepare()
        base = self.writer.begin()
        since = dict(base.stamp.positions) if base.stamp else {}
        to = self._lookout.accepted(since)
        return self._run_batch(
            base, Span(since, to, 0, previous=base.stamp), time.perf_counter(), decision="accepted-gap"
        )

    def adopt(self) -> Published:
        """Take over a table that holds data and no positions: its rows stay, ours begin where the source starts."""
        base = self.writer.begin(adopt=True)
        to = self._lookout.starts()
        return self._run_batch(base, Span({}, to, 0), time.perf_counter(), decision="adopted")

    def close(self) -> None:
        for source in self.sources:
            source.close()

    def empty(self, span: Span) -> Batch:
        return NoRows(self.writer.store)

    def _still_there(self) -> None:
        """A source that does not exist is late, unless we have read from it: then it is gone."""
        stamp = last_stamp(self.lake.store(self.name)) if self.lake.exists(self.name) else None
        for source in self.sources:
            if stamp is not None and source.name in stamp.positions and source.latest() is None:
                raise source.gone(stamp.positions[source.name])

    def _span(self, base: Base, latest: Mapping[str, Position], rows: int) -> Span | None:
        """What the next batch reads; None when nothing is new."""
        return self._lookout.span(base.stamp, latest, rows)

    def _run_batch(self, base: Base, span: Span, began: float, *, decision: str | None = None) -> Published:
        self.at_work = True
        try:
            return self._published(base, span, began, decision)
        finally:
            self.at_work = False

    def _published(self, base: Base, span: Span, began: float, decision: str | None) -> Published:
        self._tuning.fit(span.rows)
        batch = self.make(span) if span.rows else self.empty(span)
        try:
            made = time.perf_counter()
            stamp = self._stamp(base, span, batch, decision)
            batch.companions(stamp, base.place)
            reach("companions.after", self.name)
            stamp = replace(stamp, notes={**stamp.notes, **batch.notes()})
            staged = self.writer.stage(base, stamp, batch.write)
            wrote = time.perf_counter()
            self._lookout.confirm(span.to)
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
        return published(self.name, staged, span, batch.counts, seconds)

    def _audit(self, batch: Batch, staged: Staged) -> None:
        try:
            batch.audit(staged.snapshot)
        except LodeError as refused:
            branch = self.writer.keep_for_inspection(staged)
            refused.fix = f"{refused.fix or ''}; the batch is kept: read {self.name}.branch_{branch}".lstrip("; ")
            raise

    def _stamp(self, base: Base, span: Span, batch: Batch, decision: str | None) -> Stamp:
        notes: dict[str, str] = {}
        if decision:
            notes[decision] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        asof = self._lookout.asof(span.to)
        if asof is None and base.stamp is not None:
            asof = base.stamp.asof
        if asof is not None:
            notes["asof"] = f"{asof:.3f}"
        number = base.stamp.batch + 1 if base.stamp else 1
        return Stamp(self.name, self.run, number, span.to, span.since, batch.counts, notes)


__all__ = ["Batch", "Flow", "Published", "Span"]
