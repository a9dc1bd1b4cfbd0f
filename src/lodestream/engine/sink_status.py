"""How far the sinks of a table are, from what the project remembers and what the last run said. No JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lodestream.names import feed_of
from lodestream.observe import Event, SinkBlocked, SinkRefreshed, SinkResumed, SinkRetry
from lodestream.pipeline import Table
from lodestream.serving.declared import labels_of
from lodestream.serving.position import Position
from lodestream.tables.history import History
from lodestream.tables.sink_notes import PREFIX, TABLE, note_key

Said = Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """`behind` counts the snapshots that it was not given; None: what it has is no longer in the table's history."""

    name: str
    position: str | None
    behind: int | None
    error: str | None = None


def sink_status(
    table: Table, views: Mapping[str, History], said: Mapping[tuple[str, str], str]
) -> tuple[SinkStatus, ...]:
    """`said` is what the sinks of the last run failed with, by table and sink."""
    view = views.get(feed_of(table.name)) or views.get(table.name)
    notes = views[TABLE].properties if TABLE in views else {}
    found = []
    for label in labels_of(table):
        position = notes.get(PREFIX + note_key(table.name, label))
        behind = _behind(view, position) if view else 0
        found.append(SinkStatus(label, position, behind, said.get((table.name, label))))
    return tuple(found)


def failing_sinks(events: Iterable[Event]) -> dict[tuple[str, str], str]:
    """What sinks failed with that have not gone on since, from the events of one run."""
    found: dict[tuple[str, str], str] = {}
    for event in events:
        if event.table and isinstance(event, SinkRetry | SinkBlocked):
            found[event.table, event.sink] = event.what
        elif event.table and isinstance(event, SinkResumed | SinkRefreshed):
            found.pop((event.table, event.sink), None)
    return found


def _behind(view: History, position: str | None) -> int | None:
    at = Position.parse(position) if position else None
    if at is not None and at.uuid != view.uuid:
        return None
    count = 0
    for one in view.ancestors(view.head()):
        if at is not None and one.id == at.snapshot:
            return count + (at.number is not None)
        count += 1
        if at is not None and one.parent == at.snapshot and view.snapshot(at.snapshot) is None:
            return count
    return count if at is None else None
