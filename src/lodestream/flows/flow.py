"""What every flow does with a batch: where am I, what is new, stage, audit, publish."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lodestream.errors import AnotherWriter, CatalogUnavailable, LodeError, SourceChanged
from lodestream.failpoints import reach
from lodestream.flows.promise import Promise
from lodestream.flows.tuning import Tuning
from lodestream.pipeline import Table
from lodestream.sources.source import Position, Source
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake
from lodestream.tables.positions import last_stamp
from lodestream.tables.publish import Base, Moved, Staged, Writer
from lodestream.tables.snapshot import Snapshot, Stamp

# Maintenance may move `main` under a batch now and then; losing to it this often means something is wrong.
_MOST_REDOS = 20


@dataclass(frozen=True, slots=True)
class Span:
    """The input of one batch: from where to where, per source."""

    since: Mapping[str, Position]
    to: Mapping[str, Position]
    rows: int
    caught_up: bool = True
    previous: Stamp | None = None


@dataclass(frozen=True, slots=True)
class Published:
    flow: str
    batch: int
    snapshot: int
    positions: Mapping[str, Any]
    rows: Mapping[str, int]
    bytes: int
    caught_up: bool
    seconds: Mapping[str, float] = field(default_factory=dict)


class Batch(ABC):
    """What a tier made of a span, not yet written."""

    counts: Mapping[str, int]

    @abstractmethod
    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        """Write the rows to the branch in one snapshot that carries the properties."""

    def companions(self, stamp: Stamp, place: str) -> None:
        """Commit what must be visible no later than the batch, which builds on `place`: its dead letters."""
        return

    def tidy(self, *, lost: bool) -> None:
        """Called once the batch is decided: published, or lost to another run. Must not raise."""
        return

    def audit(self, snapshot: Snapshot) -> None:
        """Raise `AuditFailed` or `ContractViolation` when the staged rows must not be published."""
        return

    def notes(self) -> Mapping[str, str]:
        """Further snapshot properties, asked for after `companions`."""
        return {}

    def release(self) -> None:
        """Called when the batch is done, published or not."""
        return


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
        for _ in range(_MOST_REDOS):
            began = time.perf_counter()
            latest = self._look()
            if latest is None:
                self._still_there()
            if latest is None or (self._positions is not None and not self._news(self._positions, latest)):
                return None
            base = self.writer.begin()
            if base.stamp is not None and base.stamp.positions != self._positions:
                # Another run may have read further than our look: to it, the source would seem to have shrunk.
                latest = self._look()
            span = self._span(base, latest, rows) if latest is not None else None
            if span is None:
                self._positions = base.stamp.positions if base.stamp else None
                return None
            reach("plan.after", self.name)
            self._positions = None
            try:
                published = self._run_batch(base, span, began)
            except Moved:
                continue
            self._positions = published.positions
            return published
        raise CatalogUnavailable(
            f"{self.name} moved under {_MOST_REDOS} attempts at one batch",
            why="maintenance or a rollback changed the table each time before the batch could be published",
        )

    @property
    def writer(self) -> Writer:
        if self._writer is None:
            raise RuntimeError("prepare() first")
        return self._writer

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
        to: dict[str, Position] = {}
        for source in self.sources:
            latest = source.latest()
            if latest is not None:
                to[source.name] = self._accepted(source, since.get(source.name), latest)
        return self._run_batch(
            base, Span(since, to, 0, previous=base.stamp), time.perf_counter(), decision="accepted-gap"
        )

    def adopt(self) -> Published:
        """Take over a table that holds data and no positions: its rows stay, ours begin where the source starts."""
        base = self.writer.begin(adopt=True)
        to: dict[str, Position] = {}
        for source in self.sources:
            latest = source.latest()
            if latest is not None:
                to[source.name] = source.start(latest)
        return self._run_batch(base, Span({}, to, 0), time.perf_counter(), decision="adopted")

    def close(self) -> None:
        for source in self.sources:
            source.close()

    def empty(self, span: Span) -> Batch:
        return _Nothing(self)

    def _look(self) -> dict[str, Position] | None:
        """How far each source reaches now; None while one does not exist."""
        found: dict[str, Position] = {}
        for source in self.sources:
            latest = source.latest()
            if latest is None:
                return None
            found[source.name] = latest
        return found

    def _still_there(self) -> None:
        """A source that does not exist is late, unless we have read from it: then it is gone."""
        stamp = last_stamp(self.lake.store(self.name)) if self.lake.exists(self.name) else None
        for source in self.sources:
            if stamp is not None and source.name in stamp.positions and source.latest() is None:
                raise source.gone(stamp.positions[source.name])

    def _news(self, positions: Mapping[str, Position], latest: Mapping[str, Position]) -> bool:
        """Whether something waits, as far as the sources tell: an idle flow does not ask the catalog."""
        driving = filter(self.drives, self.sources)
        return any(self._waiting(source, positions.get(source.name), latest[source.name]) for source in driving)

    def _waiting(self, source: Source, since: Position | None, latest: Position) -> int:
        if since is None:
            return 1
        if since == latest:
            return 0
        try:
            return source.pending(since, latest)
        except SourceChanged:
            return 1  # step() raises it where it is reported

    def _accepted(self, source: Source, since: Position | None, latest: Position) -> Position:
        return source.start(latest) if since is None else source.accept(since, latest)

    def _span(self, base: Base, latest: Mapping[str, Position], rows: int) -> Span | None:
        known = base.stamp.positions if base.stamp else {}
        since: dict[str, Position] = {}
        to: dict[str, Position] = {}
        waiting, caught_up = 0, True
        for source in self.sources:
            newest = latest[source.name]
            start = known.get(source.name) or source.start(newest)
            source.check(start, newest)
            since[source.name] = start
            to[source.name] = source.cap(start, newest, rows)
            if self.drives(source):
                waiting += source.pending(start, to[source.name])
                caught_up = caught_up and to[source.name] == newest
        pin = base.stamp is None and any(source.pins_start for source in self.sources)
        return Span(since, to, waiting, caught_up, base.stamp) if waiting or pin else None

    def _run_batch(self, base: Base, span: Span, began: float, *, decision: str | None = None) -> Published:
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
            self._confirm(span)
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
        return _published(self.name, staged, span, batch.counts, seconds)

    def _confirm(self, span: Span) -> None:
        for source in self.sources:
            if source.name in span.to:
                source.confirm(span.to[source.name])

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
        known = [source.asof(span.to[source.name]) for source in self.sources if self.drives(source)]
        moments = [moment for moment in known if moment is not None]
        if moments and len(moments) == len(known):
            notes["asof"] = f"{min(moments):.3f}"
        elif base.stamp is not None and base.stamp.asof is not None:
            notes["asof"] = f"{base.stamp.asof:.3f}"
        number = base.stamp.batch + 1 if base.stamp else 1
        return Stamp(self.name, self.run, number, span.to, span.since, batch.counts, notes)


class _Nothing(Batch):
    """A batch without rows: it only moves positions."""

    def __init__(self, flow: Flow) -> None:
        self.counts = {"in": 0}
        self._flow = flow

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        store = self._flow.writer.store
        if isinstance(store, IcebergStore):
            store.commit_empty(branch, properties)


def _published(
    flow: str, staged: Staged, span: Span, counts: Mapping[str, int], seconds: Mapping[str, float]
) -> Published:
    rows = {**counts, "out": staged.snapshot.added_rows}
    size = int(staged.snapshot.summary.get("added-files-size", "0"))
    return Published(
        flow, staged.stamp.batch, staged.snapshot.id, staged.stamp.positions, rows, size, span.caught_up, seconds
    )
