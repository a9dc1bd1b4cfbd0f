"""`lode changes`: what came and went in a table, batch by batch. No JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from lodestream.errors import ConfigError
from lodestream.names import feed_of
from lodestream.planning.keyed import keyed
from lodestream.planning.project import Project
from lodestream.recovery.choice import parse_moment, refuse_ambiguous
from lodestream.tables.inspect import Inspector, TableView
from lodestream.tables.later_changes import ChangePosition, changes_in, counts_all, later_snapshots, reachable
from lodestream.tables.snapshot import position_in


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that appeared (`weight` 1) or went away (-1), and the snapshot and time it did.

    `number` counts the changes of a snapshot: `SNAPSHOT:NUMBER` is the position after this one. Where it counts all
    rows of the snapshot, because the one before had expired, `:all` follows: it means the same when more has expired.
    """

    weight: int
    snapshot: int
    number: int
    at: datetime
    row: Mapping[str, Any]
    of_all: bool = False

    @property
    def position(self) -> str:
        return f"{self.snapshot}:{self.number}{':all' if self.of_all else ''}"


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
    """All changes up to now, one by one: few are in memory at a time. `end` is the position after them."""

    table: str
    feed: str
    rows: Iterator[ChangedRow]
    end: str | None


def read_changes(project: Project, name: str, *, since: str | None = None, limit: int = 100) -> TableChanges:
    """The oldest changes first, after a position, a snapshot or a moment; 0 for `limit` gives all of them."""
    found = stream_changes(project, name, since=since)
    changes = tuple(islice(found.rows, limit)) if limit else tuple(found.rows)
    more = bool(limit) and next(found.rows, None) is not None
    return TableChanges(found.table, found.feed, changes, more, changes[-1].position if more else found.end)


def stream_changes(project: Project, name: str, *, since: str | None = None) -> ChangeStream:
    if since is not None:
        refuse_ambiguous(since)
    (table,) = project.graph.select([name]).names[:1]
    declared = project.graph[table]
    if declared.problem is not None and declared.tier == "silver":
        raise declared.problem  # whether it has a feed depends on what it reads
    feed = feed_of(table) if keyed(project.graph, table) else table
    inspector = Inspector(project.config)
    view = inspector.look(feed)
    head = view.head() if view else None
    if view is None or head is None:
        return ChangeStream(table, feed, iter(()), None)
    position = _start(view, inspector.look(table), since)
    return ChangeStream(table, feed, _rows(view, position), str(head.id))


def _rows(view: TableView, position: ChangePosition) -> Iterator[ChangedRow]:
    for snapshot in later_snapshots(view, position):
        at = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
        of_all = counts_all(view, snapshot, position)
        for number, weight, row in changes_in(view, snapshot, position):
            yield ChangedRow(weight, snapshot.id, number, at, row, of_all)


def _start(view: TableView, table: TableView | None, since: str | None) -> ChangePosition:
    if since is None:
        return ChangePosition()
    if given := re.fullmatch(r"(\d+)(?::(\d+)(:all)?)?", since):
        number = int(given[2]) if given[2] else None
        return _known(view, table, ChangePosition(int(given[1]), number, bool(given[3]) if number else None))
    moment = _moment(since)
    before = (one.id for one in view.ancestors(view.head()) if one.timestamp_ms / 1000 <= moment)
    return ChangePosition(next(before, None))


def _known(view: TableView, table: TableView | None, wanted: ChangePosition) -> ChangePosition:
    """A snapshot of the feed, or one of the table: that stands at a position in the feed."""
    if reachable(view, wanted):
        return wanted
    snapshot = wanted.snapshot or 0
    own = table.snapshot(snapshot) if table and wanted.number is None else None
    position = position_in(own, view.name) if own else None
    if position is None:
        raise ConfigError(
            f"{view.name} has no snapshot {snapshot}",
            why="it has expired, or belongs to another table",
            fix="`lode events --name batch.published` shows the snapshots",
        )
    return ChangePosition(int(position["snapshot"]))


def _moment(text: str) -> float:
    try:
        return parse_moment(text).timestamp()
    except ConfigError as error:
        raise ConfigError(
            f'--since "{text}" is neither a snapshot nor a time',
            why=error.why,
            fix=f"use a snapshot id, or {error.fix}",
        ) from error
