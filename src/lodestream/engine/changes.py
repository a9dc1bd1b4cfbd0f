"""`lode changes`: what came and went in a table, batch by batch. No JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from lodestream.engine.keyed import keyed
from lodestream.engine.project import Project
from lodestream.errors import ConfigError, SourceRewritten
from lodestream.recovery.choice import parse_moment
from lodestream.tables.feed import feed_of, position_in
from lodestream.tables.inspect import Inspector, TableView
from lodestream.tables.row_changes import changed_rows
from lodestream.tables.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that appeared (`weight` 1) or went away (-1), and the snapshot and time it did.

    `number` counts the changes of a snapshot: `SNAPSHOT:NUMBER` is the place after this one.
    """

    weight: int
    snapshot: int
    number: int
    at: datetime
    row: Mapping[str, Any]

    @property
    def place(self) -> str:
        return f"{self.snapshot}:{self.number}"


@dataclass(frozen=True, slots=True)
class TableChanges:
    """`more` says that there are further ones; `next` is where to go on, now or when the table has changed again."""

    table: str
    feed: str
    changes: tuple[ChangedRow, ...]
    more: bool
    next: str | None


@dataclass(frozen=True, slots=True)
class ChangeStream:
    """All changes up to now, one by one: however many there are, few are in memory. `end` is the place after them."""

    table: str
    feed: str
    rows: Iterator[ChangedRow]
    end: str | None


def read_changes(project: Project, name: str, *, since: str | None = None, limit: int = 100) -> TableChanges:
    """The oldest changes first, after a place, a snapshot or a moment; 0 for `limit` gives all of them."""
    found = stream_changes(project, name, since=since)
    changes = tuple(islice(found.rows, limit)) if limit else tuple(found.rows)
    more = bool(limit) and next(found.rows, None) is not None
    return TableChanges(found.table, found.feed, changes, more, changes[-1].place if more else found.end)


def stream_changes(project: Project, name: str, *, since: str | None = None) -> ChangeStream:
    (table,) = project.graph.select([name]).names[:1]
    feed = feed_of(table) if keyed(project.graph, table) else table
    inspector = Inspector(project.config)
    view = inspector.look(feed)
    head = view.head() if view else None
    if view is None or head is None:
        return ChangeStream(table, feed, iter(()), None)
    place = _start(view, inspector.look(table), since)
    return ChangeStream(table, feed, _rows(view, _later(view, place), place), str(head.id))


@dataclass(frozen=True, slots=True)
class _Place:
    """After a snapshot, or after the first `number` changes of it; no snapshot is the beginning."""

    snapshot: int | None = None
    number: int | None = None


def _later(view: TableView, place: _Place) -> list[Snapshot]:
    """The snapshots with changes after a place, oldest first. One that we stand inside is the first of them."""
    later: list[Snapshot] = []
    for one in view.ancestors(view.head()):
        if one.id == place.snapshot:
            return [*([one] if place.number is not None else []), *reversed(later)]
        later.append(one)
        if place.snapshot is not None and one.parent == place.snapshot and view.snapshot(place.snapshot) is None:
            break  # the place itself has expired, and what came after it is all there
    return later[::-1]


def _rows(view: TableView, snapshots: list[Snapshot], place: _Place) -> Iterator[ChangedRow]:
    for snapshot in snapshots:
        follows = place.snapshot is not None and snapshot.parent == place.snapshot
        if follows and view.snapshot(snapshot.parent or 0) is None and snapshot.operation not in ("append", "replace"):
            raise SourceRewritten(
                f"{view.name} can no longer be compared with snapshot {place.snapshot}",
                why=f"snapshot {snapshot.id} replaced rows in place, and the one before it has expired",
                fix="begin again without --since, or keep snapshots longer than their readers lag behind",
            )
        skip = place.number or 0 if snapshot.id == place.snapshot else 0
        at = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
        for number, weight, row in changed_rows(view, snapshot, skip, follows=follows):
            yield ChangedRow(weight, snapshot.id, number, at, row)


def _start(view: TableView, table: TableView | None, since: str | None) -> _Place:
    if since is None:
        return _Place()
    if place := re.fullmatch(r"(\d+)(?::(\d+))?", since):
        return _known(view, table, int(place[1]), int(place[2]) if place[2] else None)
    moment = _moment(since)
    before = (one.id for one in view.ancestors(view.head()) if one.timestamp_ms / 1000 <= moment)
    return _Place(next(before, None))


def _known(view: TableView, table: TableView | None, snapshot: int, number: int | None) -> _Place:
    """A snapshot of the feed, or one of the table: that stands at a place in the feed."""
    history = list(view.ancestors(view.head()))
    if any(one.id == snapshot for one in history):
        return _Place(snapshot, number)
    if number is None and any(one.parent == snapshot for one in history):
        return _Place(snapshot)
    own = table.snapshot(snapshot) if table and number is None else None
    place = position_in(own, view.name) if own else None
    if place is None:
        raise ConfigError(
            f"{view.name} has no snapshot {snapshot}",
            why="it has expired, or belongs to another table",
            fix="`lode events --name batch.published` shows the snapshots",
        )
    return _Place(int(place["snapshot"]))


def _moment(text: str) -> float:
    try:
        return parse_moment(text).timestamp()
    except ConfigError as error:
        raise ConfigError(
            f'--since "{text}" is neither a snapshot nor a time',
            why=error.why,
            fix=f"use a snapshot id, or {error.fix}",
        ) from error
