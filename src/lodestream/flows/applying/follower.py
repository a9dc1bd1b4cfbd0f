"""A keyed table is its feed applied: one feed snapshot after the other, each exactly once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, expr

from lodestream.contracts.quoting import name as quoted
from lodestream.errors import CatalogUnavailable, NotOurTable, SourceRecreated, SourceRewritten
from lodestream.failpoints import reach
from lodestream.flows.applying.load import load
from lodestream.flows.applying.mending import mend
from lodestream.flows.batch import Facts
from lodestream.flows.context import SMALL
from lodestream.flows.writing.siblings import Level
from lodestream.flows.writing.upserts import FeedWatch
from lodestream.names import BATCH, WEIGHT
from lodestream.tables.find import among
from lodestream.tables.hidden import spread
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake
from lodestream.tables.notes import ASOF, HELD
from lodestream.tables.publish import Base, Moved, Writer, until_published
from lodestream.tables.snapshot import Snapshot, Stamp, live_rows, position_in
from lodestream.tables.store import TableStore
from lodestream.tables.swap import Swapper

# How far back the count of the rows is looked for: the batch before has noted it, unless an earlier version made it.
_MOST_STEPS = 100
Write = Callable[[str, dict[str, str]], None]


class Follower:
    """Brings a table and its marks to the head of its feed.

    It decides nothing: two runs that apply the same snapshot race for one publication, and the loser looks again.
    """

    def __init__(
        self,
        lake: Lake,
        run: str,
        feed: IcebergStore,
        state: IcebergStore,
        marks: IcebergStore,
        identity: Sequence[str],
        watch: FeedWatch,
    ) -> None:
        self._lake = lake
        self._run = run
        self._feed = feed
        self._store = state
        self._table = state.name
        self._identity = list(identity)
        self._watch = watch
        self._state = Writer(state, run, alone=False)
        self._marks = Writer(marks, run, alone=False)
        self._swapper = Swapper(lake, state)
        self._facts: dict[int, Facts] = {}
        self._state.sweep()
        self._marks.sweep()

    def catch_up(self, known: Mapping[int, Facts] | None = None) -> Level:
        """Apply what the table has not applied yet, then say where it stands; `known` spares a look at the feed."""
        steps = 0
        self._facts = dict(known or {})

        def attempt() -> Level:
            nonlocal steps
            after, pending = self._pending()
            for snapshot in pending:
                self._step(after, snapshot)
                after, steps = snapshot.id, steps + 1
            return self._level(steps)

        return until_published(self._table, attempt, why="runs beside us apply the same feed")

    def leave(self) -> None:
        """Drop the branches of a run that comes once."""
        for writer in (self._state, self._marks):
            writer.store.drop(writer.branch)

    def _pending(self) -> tuple[int | None, list[Snapshot]]:
        """The position that the table stands on, and the feed's snapshots after it, oldest first."""
        base = self._begin()
        # The feed is read after the table: whatever the table stands on, the feed has had it.
        self._feed.refresh()
        after = self._applied(base)
        found: list[Snapshot] = []
        for snapshot in self._feed.ancestors(self._feed.head()):
            if snapshot.id == after:
                return after, found[::-1]
            if snapshot.stamp is not None:
                found.append(snapshot)
            if after is not None and snapshot.parent == after:
                return after, found[::-1]  # our position itself may have expired: what came after it is all there
        if after is None:
            return after, found[::-1]
        follow_back(self._feed, self._marks.store, self._state.store)
        return self._pending()

    def _begin(self) -> Base:
        base = self._state.begin()
        if not self._store.holds_hidden(self._head(base)):
            mend(self._lake, self._store, base, self._state.branch, self._identity)
            base = self._state.begin()
        return base

    def _step(self, after: int | None, snapshot: Snapshot) -> None:
        reach("apply.before", self._table)
        facts = self._facts.get(snapshot.id) or self._watch.look(self._rows(snapshot), snapshot)
        # Marks come first: once the table stands on a snapshot, its marks are there.
        marks = self._marks.begin()
        if facts.marks and self._applied(marks) != snapshot.id:
            self._publish(self._marks, marks, snapshot, self._remember(snapshot))
        reach("apply.between", self._table)
        state = self._begin()
        if self._applied(state) != after:
            raise Moved(self._table)  # a run beside us applies the same feed
        self._publish(self._state, state, snapshot, self._change(snapshot, facts, state.head), self._held(state))
        reach("apply.after", self._table)

    def _publish(
        self, writer: Writer, base: Base, snapshot: Snapshot, write: Write, notes: Mapping[str, str] | None = None
    ) -> None:
        stamp = self._stamp(base, snapshot)
        writer.publish(writer.stage(base, replace(stamp, notes={**stamp.notes, **(notes or {})}), write))

    def _head(self, base: Base) -> Snapshot:
        head = self._store.snapshot(base.head)
        if head is None:
            raise Moved(self._table)
        return head

    def _held(self, base: Base) -> dict[str, str]:
        """A note for who counts the rows: the history before a snapshot may expire, and with it what it tells."""
        store = self._state.store
        found = live_rows(islice(store.ancestors(store.snapshot(base.head)), _MOST_STEPS))
        return {} if found is None else {HELD: str(found)}

    def _remember(self, snapshot: Snapshot) -> Write:
        kept = self._lake.whole(self._marks.store.name).columns
        marks = self._rows(snapshot).where(col(WEIGHT) == 0).select(*map(quoted, kept))
        return partial(self._lake.append, self._marks.store.name, marks)

    def _change(self, snapshot: Snapshot, facts: Facts, head: int) -> Write:
        rows = spread(self._rows(snapshot).where(col(WEIGHT) != 0).drop(BATCH))
        located = facts.state == head and len(facts.locations) == facts.gone
        if facts.gone and located and self._swapper.able:
            coming = rows.where(col(WEIGHT) > 0).drop(WEIGHT)
            return partial(self._swapper.swap, coming if facts.came else None, facts.locations)
        if facts.gone:
            return partial(self._replace, rows, facts, head)
        if facts.came:
            new = rows.drop(WEIGHT)
            if facts.came > SMALL:
                return partial(load, self._lake, self._table, new, self._identity, self._watch.partition_by)
            return partial(self._lake.append, self._table, new)
        return self._nothing

    def _replace(self, rows: DataFrame, facts: Facts, head: int, branch: str, properties: Mapping[str, str]) -> None:
        """Look for the rows that go: the batch that wrote the feed may not have known where they lie."""
        names = {one: f"_lode_x_{number}" for number, one in enumerate(self._identity)}
        touched = rows.select(*[col(quoted(one)).alias(name) for one, name in names.items()]).distinct()
        same = expr(" AND ".join(f"{quoted(one)} = {name}" for one, name in names.items()))
        stored = self._lake.whole(self._table, head)
        listed = among(quoted(self._identity[0]), facts.replaced, stored.schema[self._identity[0]].dataType)
        ranges = [f"{quoted(one)} BETWEEN {low} AND {high}" for one, (low, high) in facts.within.items()]
        for condition in (*filter(None, [listed]), *ranges):
            stored = stored.where(condition)
        coming = rows.where(col(WEIGHT) > 0).drop(WEIGHT)
        self._swapper.replace(stored, touched, same, coming, branch, properties)

    def _nothing(self, branch: str, properties: Mapping[str, str]) -> None:
        self._state.store.commit_empty(branch, properties)

    def _stamp(self, base: Base, snapshot: Snapshot) -> Stamp:
        """As the feed's own, so that the table says which input it contains, beside its position in the feed."""
        source = snapshot.stamp
        if source is None:
            raise ValueError("only stamped snapshots are applied")
        positions = {**source.positions, self._feed.name: {"uuid": self._feed.uuid, "snapshot": snapshot.id}}
        notes = {ASOF: source.notes[ASOF]} if ASOF in source.notes else {}
        before = base.stamp.positions if base.stamp else None
        return Stamp(self._table, self._run, source.batch, positions, before, source.rows, notes)

    def _level(self, steps: int) -> Level:
        self._marks.store.refresh()
        state, marks = self._state.store.head(), self._marks.store.head()
        if state is None or marks is None:
            raise CatalogUnavailable(f"{self._table} has no snapshot", why="its creation was interrupted")
        return Level(state, marks, steps, self._state.store, self._marks.store)

    def _rows(self, snapshot: Snapshot) -> DataFrame:
        if snapshot.parent is None:
            return self._lake.whole(self._feed.name, snapshot.id)
        return self._lake.appended(self._feed.name, snapshot.parent, snapshot.id)

    def _applied(self, base: Base) -> int | None:
        """The snapshot of the feed that the table, or its marks, has applied; None before everything."""
        if base.stamp is None:
            return None
        feed, table = self._feed, self._table
        position = base.stamp.positions.get(feed.name)
        if position is None:
            raise NotOurTable(
                f"{table} was kept without a change feed until now",
                why="its rows say which input they contain, but not which changes made them",
                fix=f"rename or drop {table}, and it is made again from its input with a feed",
            )
        if position["uuid"] != feed.uuid:
            raise SourceRecreated(
                f"{feed.name} was dropped and created again",
                why=f"{table} has applied table {position['uuid']}, the catalog now has {feed.uuid}",
                fix=f"drop {table} and its siblings, and they are made again from their input",
            )
        return int(position["snapshot"])


def follow_back(feed: IcebergStore, marks: TableStore, state: TableStore) -> None:
    """Marks and table go back to the newest position that the feed still has.

    The marks first: only a table that is ahead of its feed brings us here again after a crash.
    """
    history = {snapshot.id for snapshot in feed.ancestors(feed.head())}
    for store in (marks, state):
        store.refresh()
        _go_back(store, feed.name, history)


def _go_back(store: TableStore, feed: str, history: set[int]) -> None:
    for snapshot in store.ancestors(store.head()):
        position = position_in(snapshot, feed)
        made = position is None and snapshot.total_rows == 0  # as it was created: it holds nothing of the feed
        if made or (position is not None and position["snapshot"] in history):
            if snapshot != store.head():
                store.rollback(snapshot.id)
            return
    raise SourceRewritten(
        f"{feed} was rolled back to before everything that {store.name} knows",
        why="the snapshots that would fit have expired",
        fix="drop the table and its marks: both are made again from the feed",
    )
