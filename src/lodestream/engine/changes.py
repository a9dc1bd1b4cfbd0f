"""`lode changes`: what came and went in a table, batch by batch. No JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import Any

from lodestream.engine.keyed import keyed
from lodestream.engine.project import Project
from lodestream.errors import ConfigError, SourceRewritten
from lodestream.recovery.choice import parse_moment
from lodestream.tables.feed import BATCH, ORDER, WEIGHT, feed_of, position_in
from lodestream.tables.inspect import Inspector, TableView
from lodestream.tables.snapshot import Snapshot

_GROWS = ("append", "replace")


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that appeared (`weight` 1) or went away (-1), and the snapshot and time it did."""

    weight: int
    snapshot: int
    at: datetime
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TableChanges:
    """`more` says that there are further ones, after those that were asked for."""

    table: str
    feed: str
    changes: tuple[ChangedRow, ...]
    more: bool


def read_changes(project: Project, name: str, *, since: str | None = None, limit: int = 100) -> TableChanges:
    """The oldest changes first, after a snapshot or a moment; 0 for `limit` gives all of them."""
    (table,) = project.graph.select([name]).names[:1]
    feed = feed_of(table) if keyed(project.graph, table) else table
    inspector = Inspector(project.config)
    view = inspector.look(feed)
    if view is None:
        return TableChanges(table, feed, (), more=False)
    after = _start(view, inspector.look(table), since)
    found = _rows(view, after)
    changes = tuple(islice(found, limit)) if limit else tuple(found)
    return TableChanges(table, feed, changes, more=bool(limit) and next(found, None) is not None)


def _rows(view: TableView, after: int | None) -> Iterator[ChangedRow]:
    later = list(takewhile(lambda one: one.id != after, view.ancestors(view.head())))
    for snapshot in reversed(later):
        if snapshot.operation not in _GROWS:
            raise SourceRewritten(
                f"{view.name} was changed in place by snapshot {snapshot.id} ({snapshot.operation})",
                why="it is written as a whole, so no feed says which of its rows changed",
                fix="ask for the changes of the Silver table that it is made from",
            )
        if snapshot.operation == "append" and snapshot.added_rows:
            yield from _appended(view, snapshot)


def _appended(view: TableView, snapshot: Snapshot) -> Iterator[ChangedRow]:
    scan = view.table.incremental_append_scan(
        from_snapshot_id_exclusive=snapshot.parent, to_snapshot_id_inclusive=snapshot.id
    )
    at = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
    for row in scan.to_arrow().to_pylist():
        weight = row.pop(WEIGHT, 1)
        own = {key: value for key, value in row.items() if key not in (ORDER, BATCH)}
        if weight:
            yield ChangedRow(weight, snapshot.id, at, own)


def _start(view: TableView, table: TableView | None, since: str | None) -> int | None:
    """The snapshot of the feed to begin after; None is the beginning."""
    if since is None:
        return None
    if since.isdigit():
        return _known(view, table, int(since))
    moment = _moment(since)
    before = (one.id for one in view.ancestors(view.head()) if one.timestamp_ms / 1000 <= moment)
    return next(before, None)


def _known(view: TableView, table: TableView | None, snapshot: int) -> int:
    """A snapshot of the feed, or one of the table: that stands at a place in the feed."""
    if view.snapshot(snapshot) is not None:
        return snapshot
    own = table.snapshot(snapshot) if table else None
    place = position_in(own, view.name) if own else None
    if place is None:
        raise ConfigError(
            f"{view.name} has no snapshot {snapshot}",
            why="it has expired, or belongs to another table",
            fix="`lode events --name batch.published` shows the snapshots",
        )
    return int(place["snapshot"])


def _moment(text: str) -> float:
    try:
        return parse_moment(text).timestamp()
    except ConfigError as error:
        raise ConfigError(
            f'--since "{text}" is neither a snapshot nor a time',
            why=error.why,
            fix=f"use a snapshot id, or {error.fix}",
        ) from error
