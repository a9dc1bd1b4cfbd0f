"""What is due to a sink: from a position to the newest state of its table, cut into deliveries."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lodestream.config import Config
from lodestream.errors import SinkRefused, SourceRewritten
from lodestream.serving.position import Position
from lodestream.serving.sink import Change, Delivery, Sink
from lodestream.tables.heads import heads_of
from lodestream.tables.inspect import Inspector, TableView
from lodestream.tables.later_changes import ChangePosition, changes_in, counts_all, later_snapshots, reachable
from lodestream.tables.row_changes import Changed, whole_arrow, whole_rows
from lodestream.tables.snapshot import Snapshot, position_in


class TableFeed:
    """One table as sinks are given it. `feed` is where its changes are: itself, or the feed of a keyed table.

    A delivery never spans snapshots, so that it is the same when it is given again, whatever came meanwhile.
    """

    def __init__(self, config: Config, table: str, feed: str) -> None:
        self.table = table
        self._feed = feed
        self._tables = Inspector(config)
        self._heads = heads_of(config)

    def version(self) -> object:
        """Another one after each commit to the table, for one cheap query; None where no such query is."""
        found = self._heads.look() if self._heads is not None else None
        return (found.get(self.table), found.get(self._feed)) if found is not None else None

    def due(self, sink: Sink, at: Position | None) -> Iterator[Delivery]:
        """Deliveries in their order; after a whole one, whoever delivers looks again.

        Raises `SinkRefused` when changes that the sink lacks are gone and it cannot be given the whole table.
        """
        view = self._tables.look(self._feed)
        if view is None or view.head() is None:
            return
        lost = None if sink.latest else _lost(view, at)
        if lost is not None and sink.gap == "refuse":
            raise _refused(self.table, sink, lost)
        if sink.latest or lost is not None:
            yield from self._whole(view, at)
        else:
            yield from _changes(self.table, view, at, sink.batch_rows)

    def _whole(self, feed: TableView, at: Position | None) -> Iterator[Delivery]:
        view = feed if self._feed == self.table else self._tables.look(self.table)
        head = view.head() if view else None
        shown = self._shown_by(feed, view, head) if view and head else None
        if view is None or head is None or shown is None or shown == at:
            return
        rows = _changed(whole_rows(view, head), view.uuid, head.id, of_all=True)
        after = str(at) if at else None
        yield Delivery(self.table, rows, str(shown), after, whole=True, arrow=lambda: whole_arrow(view, head))

    def _shown_by(self, feed: TableView, view: TableView, head: Snapshot) -> Position | None:
        """Where in the feed the head of the table is; None before anything of the feed was applied."""
        if view is feed:
            return Position(feed.uuid, head.id)
        positions = (position_in(one, self._feed) for one in view.ancestors(head))
        position = next((one for one in positions if one is not None), None)
        return Position(str(position["uuid"]), int(position["snapshot"])) if position and position["snapshot"] else None


def _changes(table: str, view: TableView, at: Position | None, most: int) -> Iterator[Delivery]:
    position, empty = _change_position(at) if at else ChangePosition(), False
    for snapshot in later_snapshots(view, position):
        changes, of_all = changes_in(view, snapshot, position), counts_all(view, snapshot, position)
        part, empty = list(islice(changes, most)), True
        while part:
            following = list(islice(changes, most))
            end = _end(view, snapshot, part[-1][0] if following else None, of_all=of_all)
            rows = tuple(_changed(iter(part), view.uuid, snapshot.id, of_all=of_all))
            yield Delivery(table, rows, str(end), str(at) if at else None)
            at, part, empty = end, following, False
    head = view.head()
    if empty and head is not None:  # else a position that nothing follows would expire one day, and seem a gap
        yield Delivery(table, (), str(Position(view.uuid, head.id)), str(at) if at else None)


def _change_position(at: Position) -> ChangePosition:
    return ChangePosition(at.snapshot, at.number, None if at.number is None else at.of_all)


def _end(view: TableView, snapshot: Snapshot, number: int | None, *, of_all: bool) -> Position:
    return Position(view.uuid, snapshot.id, number, number is not None and of_all)


def _changed(found: Iterator[Changed], uuid: str, snapshot: int, *, of_all: bool) -> Iterator[Change]:
    """A row among all rows of a snapshot has another id than the change with the same number there."""
    return (Change(weight, row, str(Position(uuid, snapshot, number, of_all))) for number, weight, row in found)


def _lost(view: TableView, at: Position | None) -> str | None:
    """Why the changes after a position are not there any more; None when they are."""
    if at is None:
        return None
    if at.uuid != view.uuid:
        return "the table was dropped and made anew"
    if not reachable(view, _change_position(at)):
        known = view.snapshot(at.snapshot) is not None
        return f"snapshot {at.snapshot}, which it has, {'was rolled back' if known else 'has expired'}"
    try:
        for snapshot in later_snapshots(view, _change_position(at))[:1]:
            changes_in(view, snapshot, _change_position(at))
    except SourceRewritten as error:
        return error.why
    return None


def _refused(table: str, sink: Sink, why: str) -> SinkRefused:
    return SinkRefused(
        f"{table}: sink {sink.label} cannot go on from where it is",
        why=why,
        fix='gap="refresh" gives it the whole table, if it can replace what it has; another name= begins anew',
    )
