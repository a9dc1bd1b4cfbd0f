"""`lode status`: where every table is, beside a run or when nothing runs. No JVM."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

from lodestream.config import Config
from lodestream.engine.keyed import keyed
from lodestream.engine.lag import Ends, kafka_ends, kafka_pending, table_pending
from lodestream.engine.project import Project
from lodestream.engine.runs import FlowState, Runs, RunStatus
from lodestream.flows.dead.letters import SUFFIX
from lodestream.pipeline import Graph, Kafka, Table
from lodestream.recovery.open_count import count_open
from lodestream.tables.feed import feed_of
from lodestream.tables.history import History
from lodestream.tables.metadata import look_at
from lodestream.tables.snapshot import Snapshot

_AT_ONCE = 4


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
class Status:
    pipeline: str
    tables: tuple[TableStatus, ...]
    run: RunStatus | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def read_status(project: Project) -> Status:
    runs = Runs(project.config.state_dir)
    names = [table.name for table in project.graph]
    # Readers of a keyed table stand at a place of its feed.
    feeds = [feed_of(name) for name in names if keyed(project.graph, name)]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="lode-lag") as pool:
        # Brokers answer while the catalog is read.
        asked = {name: pool.submit(kafka_ends, project.config, source) for name, source in _topics(project.graph)}
        views = look_at(project.config, [*names, *feeds, *(name + SUFFIX for name in names)])
        ends = {name: one.result() for name, one in asked.items()}
    stream = StreamAge(project.graph, views)
    found: dict[str, TableStatus] = {}
    for table in project.graph:
        found[table.name] = _table(project, table, views, found, runs, stream, ends.get(table.name))
    return Status(project.pipeline.name, tuple(found.values()), runs.current())


def _table(
    project: Project,
    table: Table,
    views: Mapping[str, History],
    upstream: Mapping[str, TableStatus],
    runs: Runs,
    stream: StreamAge,
    ends: Ends | None,
) -> TableStatus:
    view = views.get(table.name)
    head = view.head() if view else None
    stamped = view.last_stamped() if view else None
    flow = runs.flow(table.name, stamped)
    if view is None or head is None:
        return TableStatus(table.name, table.tier, state=flow.state, error=flow.error)
    stamp = stamped.stamp if stamped else None
    lag = _lag(project, table, stamp.positions if stamp else {}, views, upstream, flow, ends)
    asof = stream.asof(table.name)
    age = None if asof is None else max(0.0, time.time() - asof)
    letters = views.get(table.name + SUFFIX)
    return TableStatus(
        name=table.name,
        tier=table.tier,
        snapshot=head.id,
        rows=_rows(project.config, view, head),
        positions=stamp.positions if stamp else None,
        lag_events=lag,
        lag_seconds=age if lag else lag,
        freshness_s=age,
        batch=stamp.batch if stamp else None,
        last_batch=stamped.timestamp_ms / 1000 if stamped else None,
        batch_rows={**stamp.rows, "out": stamped.added_rows} if stamp and stamped else {},
        dead=count_open(project.config, letters) if letters else None,
        state=flow.state,
        error=flow.error,
    )


def _rows(config: Config, view: History, head: Snapshot) -> int:
    """What a reader finds. Deletes that outlived the files they were about would be subtracted in vain."""
    if head.live_rows == head.total_rows or not any(one.operation == "replace" for one in view.ancestors(head)):
        return head.live_rows
    from lodestream.tables.inspect import Inspector

    whole = Inspector(config).look(view.name)
    return int(whole.table.scan().count()) if whole else head.live_rows


def _lag(
    project: Project,
    table: Table,
    positions: Mapping[str, Any],
    views: Mapping[str, History],
    upstream: Mapping[str, TableStatus],
    flow: FlowState,
    ends: Ends | None,
) -> int | None:
    """Rows still to come, from the source to here; None when the source cannot be asked."""
    if isinstance(table.source, Kafka):
        return kafka_pending(ends, positions.get("kafka"))
    if not project.graph.inputs(table.name):
        # Only its flow looks at the source: one that does not go on cannot say that nothing is new.
        return None if flow.state in ("stopped", "retrying", "blocked", "paused") else 0
    total = 0
    for name in project.graph.streams(table.name):
        behind = upstream[name].lag_events if name in upstream else None
        if behind is None:
            return None
        total += behind + table_pending(views.get(feed_of(name)) or views.get(name), positions.get(name))
    return total


def _topics(graph: Graph) -> Iterator[tuple[str, Kafka]]:
    return ((table.name, table.source) for table in graph if isinstance(table.source, Kafka))


class StreamAge:
    """Up to which moment each table is complete, by the inputs that it follows.

    A table's own stamp counts its lookups too: reference data that was loaded an hour ago is not an hour behind.
    """

    def __init__(self, graph: Graph, views: Mapping[str, History]) -> None:
        self._graph = graph
        self._views = views

    def asof(self, name: str) -> float | None:
        view = self._views.get(name)
        return self._at(name, view, view.head()) if view else None

    def _at(self, name: str, view: History, snapshot: Snapshot | None) -> float | None:
        stamp = next((one.stamp for one in view.ancestors(snapshot) if one.stamp is not None), None)
        if stamp is None:
            return None
        moments = [self._input(one, stamp.positions.get(one)) for one in self._graph.streams(name)]
        known = [moment for moment in moments if moment is not None]
        # Where an input's snapshot has expired, what the table noted itself is the best there is.
        return min(known) if known and len(known) == len(moments) else stamp.asof

    def _input(self, name: str, position: Mapping[str, Any] | None) -> float | None:
        view = self._views.get(feed_of(name)) or self._views.get(name)
        at = view.snapshot(position["snapshot"]) if view and position and position.get("snapshot") else None
        return self._at(name, view, at) if view and at else None
