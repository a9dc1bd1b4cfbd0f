"""`lode status`: where every table is, beside a run or when nothing runs. No JVM."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil

from lodestream.config import Config
from lodestream.engine.keyed import keyed
from lodestream.engine.lag import kafka_pending, table_pending
from lodestream.engine.project import Project
from lodestream.observe.events import Event, read_events
from lodestream.pipeline import Kafka, Table
from lodestream.recovery.letters import open_letters
from lodestream.tables.feed import feed_of
from lodestream.tables.inspect import Inspector, TableView


@dataclass(frozen=True, slots=True)
class TableStatus:
    """One table. `lag_*` is behind the newest input; `freshness_s` the age of the moment up to which it is complete."""

    name: str
    tier: str
    snapshot: int | None = None
    rows: int | None = None
    positions: Mapping[str, Any] | None = None
    lag_events: int | None = None
    lag_seconds: float | None = None
    freshness_s: float | None = None
    batch: int | None = None
    last_batch: float | None = None
    batch_rows: Mapping[str, int] = field(default_factory=dict)
    dead: int | None = None
    state: str = "idle"
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RunStatus:
    run: str
    pid: int | None
    alive: bool
    started: float
    ended: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Status:
    pipeline: str
    tables: tuple[TableStatus, ...]
    run: RunStatus | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def read_status(project: Project) -> Status:
    run, events = _last_run(project.config)
    inspector = Inspector(project.config)
    views: dict[str, TableView | None] = {table.name: inspector.look(table.name) for table in project.graph}
    # Readers of a keyed table stand at a place of its feed.
    views |= {feed_of(name): inspector.look(feed_of(name)) for name in [*views] if keyed(project.graph, name)}
    found: dict[str, TableStatus] = {}
    for table in project.graph:
        letters = inspector.look(f"{table.name}__dead")
        state, error = _state(run, events, table.name)
        found[table.name] = _table(project, table, views, found, letters, state, error)
    return Status(project.pipeline.name, tuple(found.values()), run)


def _table(
    project: Project,
    table: Table,
    views: Mapping[str, TableView | None],
    upstream: Mapping[str, TableStatus],
    letters: TableView | None,
    state: str,
    error: str | None,
) -> TableStatus:
    view = views[table.name]
    head = view.head() if view else None
    if view is None or head is None:
        return TableStatus(table.name, table.tier, state=state, error=error)
    stamped = view.last_stamped()
    stamp = stamped.stamp if stamped else None
    lag = _lag(project, table, stamp.positions if stamp else {}, views, upstream)
    asof = stamp.asof if stamp else None
    age = None if asof is None else max(0.0, time.time() - asof)
    dead = open_letters(letters) if letters else None
    return TableStatus(
        name=table.name,
        tier=table.tier,
        snapshot=head.id,
        rows=head.total_rows,
        positions=stamp.positions if stamp else None,
        lag_events=lag,
        lag_seconds=age if lag else lag,
        freshness_s=age,
        batch=stamp.batch if stamp else None,
        last_batch=stamped.timestamp_ms / 1000 if stamped else None,
        batch_rows={**stamp.rows, "out": stamped.added_rows} if stamp and stamped else {},
        dead=dead,
        state=state,
        error=error,
    )


def _lag(
    project: Project,
    table: Table,
    positions: Mapping[str, Any],
    views: Mapping[str, TableView | None],
    upstream: Mapping[str, TableStatus],
) -> int | None:
    """Rows still to come, from the source to here; None when the source cannot be asked."""
    if isinstance(table.source, Kafka):
        return kafka_pending(project.config, table.source, positions.get("kafka"))
    if not project.graph.inputs(table.name):
        return 0
    total = 0
    for name in project.graph.streams(table.name):
        behind = upstream[name].lag_events if name in upstream else None
        if behind is None:
            return None
        total += behind + table_pending(views.get(feed_of(name)) or views[name], positions.get(name))
    return total


def _last_run(config: Config) -> tuple[RunStatus | None, list[Event]]:
    events: list[Event] = []
    for event in read_events(config.state_dir):
        if event.name == "run.started":
            events = []
        if event.name == "run.started" or (events and event.run == events[0].run):
            events.append(event)  # a command beside the run writes events of its own
    started = next((event for event in events if event.name == "run.started"), None)
    if started is None:
        return None, []
    ended = next((event for event in reversed(events) if event.name == "run.ended"), None)
    pid = started.fields.get("pid")
    alive = ended is None and pid is not None and _lives(int(pid), started.time)
    reason = ended.fields.get("reason") if ended else (None if alive else "killed")
    return RunStatus(started.run, pid, alive, started.time, ended.time if ended else None, reason), events


def _lives(pid: int, since: float) -> bool:
    try:
        # A process that began after the run is another one that was given the same number.
        return psutil.Process(pid).create_time() <= since + 1
    except psutil.Error:
        return False


_STATES = {
    "batch.published": "running",
    "flow.retry": "retrying",
    "flow.stopped": "stopped",
    "flow.blocked": "blocked",
    "flow.paused": "paused",
    "flow.resumed": "waiting",
    "flow.restarted": "waiting",
    "batch.refused": "stopped",
}


def _state(run: RunStatus | None, events: list[Event], table: str) -> tuple[str, str | None]:
    last = next((event for event in reversed(events) if event.table == table and event.name in _STATES), None)
    if last is not None and last.name in ("flow.stopped", "batch.refused"):
        return "stopped", str(last.fields.get("what") or "")
    if run is None or not run.alive:
        return "idle", None
    if last is None:
        return "waiting", None
    return _STATES[last.name], str(last.fields["what"]) if last.name in ("flow.retry", "flow.blocked") else None
