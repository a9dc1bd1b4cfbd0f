"""`lode status`: where every table is, beside a run or when nothing runs. No JVM."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from lodestream.config import Config
from lodestream.engine.flow_control import FlowState as LivingFlow
from lodestream.engine.flow_control import living_flows
from lodestream.engine.lag import table_pending
from lodestream.engine.runs import FlowState, Runs, RunStatus, in_one_line
from lodestream.engine.sink_status import SinkStatus, failing_sinks, sink_status
from lodestream.names import dead_of, feed_of
from lodestream.observe import last_events
from lodestream.pipeline import Graph, Table
from lodestream.planning.keyed import keyed
from lodestream.planning.project import Project
from lodestream.recovery.open_count import count_open
from lodestream.sources.kinds import Backlog, Waiting, kind_of
from lodestream.sources.reference.lag import reference_waiting
from lodestream.tables.history import History
from lodestream.tables.live_rows import counted
from lodestream.tables.metadata import look_at
from lodestream.tables.sink_notes import TABLE as SINKS
from lodestream.tables.snapshot import Snapshot, live_rows

log = logging.getLogger(__name__)
T = TypeVar("T")

_AT_ONCE = 4
# A run answers in a fifth of that unless the machine is busy; then its log has to do.
_ANSWER_SECONDS = 0.8
# A flow in one of these states looks at its source again and again.
_LOOKING = ("running", "waiting", "done")


@dataclass(frozen=True, slots=True)
class TableStatus:
    """One table. `lag_seconds` is the age of the oldest event that waits, `freshness_s` that of the moment up to which
    the table is complete.
    """

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
    sinks: tuple[SinkStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    pipeline: str
    tables: tuple[TableStatus, ...]
    run: RunStatus | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def read_status(project: Project) -> Status:
    names = [table.name for table in project.graph]
    # Readers of a keyed table stand at a position of its feed.
    feeds = [feed_of(name) for name in names if keyed(project.graph, name)]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="lode-lag") as pool:
        # Sources answer while the catalog is read.
        asked = {name: pool.submit(_answered, name, ask) for name, ask in _questions(project)}
        living = pool.submit(living_flows, project.config.state_dir, _ANSWER_SECONDS)
        views = look_at(project.config, [*names, *feeds, *map(dead_of, names), SINKS])
        backlogs = {name: one.result() for name, one in asked.items()}
        runs = Runs(project.config.state_dir, _told(living.result()))
    stream = StreamAge(project.graph, views)
    found: dict[str, TableStatus] = {}
    for table in project.graph:
        found[table.name] = _table(project, table, views, found, runs, stream, backlogs)
    current = runs.current()
    failing = failing_sinks(last_events(project.config.state_dir, current.run) if current else ())
    tables = [replace(one, sinks=sink_status(project.graph[name], views, failing)) for name, one in found.items()]
    return Status(project.pipeline.name, tuple(tables), current)


def _table(
    project: Project,
    table: Table,
    views: Mapping[str, History],
    upstream: Mapping[str, TableStatus],
    runs: Runs,
    stream: StreamAge,
    backlogs: Mapping[str, Backlog | None],
) -> TableStatus:
    view = views.get(table.name)
    head = view.head() if view else None
    stamped = view.last_stamped() if view else None
    flow = runs.flow(table.name, stamped)
    trouble = flow.error or (table.problem.what if table.problem else None)
    if view is None or head is None:
        return TableStatus(table.name, table.tier, state=flow.state, error=trouble)
    stamp = stamped.stamp if stamped else None
    waiting = _waiting(project, table, stamp.positions if stamp else {}, views, upstream, flow, backlogs, stream)
    asof = stream.asof(table.name)
    lag = waiting.rows if waiting else None
    since = _latest(asof, flow.caught_up_at) if waiting is None or waiting.since is None else waiting.since
    age = 0.0 if lag == 0 else None if since is None else max(0.0, time.time() - since)
    letters = views.get(dead_of(table.name))
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
        error=trouble,
    )


def _rows(config: Config, view: History, head: Snapshot) -> int | None:
    """What a reader finds, by the history or, where that was cut off, by manifests and delete files: never by rows."""
    found = live_rows(view.ancestors(head))
    if found is not None:
        return found
    from lodestream.tables.inspect import Inspector

    whole = Inspector(config).look(view.name)
    return counted(whole) if whole else None


def _waiting(
    project: Project,
    table: Table,
    positions: Mapping[str, Any],
    views: Mapping[str, History],
    upstream: Mapping[str, TableStatus],
    flow: FlowState,
    backlogs: Mapping[str, Backlog | None],
    stream: StreamAge,
) -> Waiting | None:
    """Rows still to come, from the source to here; None when the source cannot be asked."""
    backlog = backlogs.get(table.name)
    if backlog is None and table.name in backlogs:
        return None
    if table.problem is not None:
        return None  # what it reads is not known
    if not project.graph.inputs(table.name):
        found = _answered(table.name, partial(backlog, positions)) if backlog else None
        # Of what cannot be asked, only the flow that looks at it can say that nothing is new.
        return found or (Waiting(0) if flow.state in _LOOKING else None)
    total, moments = 0, []
    for name in project.graph.streams(table.name):
        given = upstream.get(name)
        if given is None or given.lag_events is None:
            return None
        pending = table_pending(views.get(feed_of(name)) or views.get(name), positions.get(name))
        total += given.lag_events + pending
        if given.lag_events and given.lag_seconds is not None:
            moments.append(time.time() - given.lag_seconds)
        if pending and (moment := stream.first_unread(name, positions.get(name))) is not None:
            moments.append(moment)
    return Waiting(total, min(moments, default=None))


def _latest(*moments: float | None) -> float | None:
    return max((one for one in moments if one is not None), default=None)


def _told(flows: Iterable[LivingFlow]) -> dict[tuple[str, str], FlowState]:
    """What living runs say of their flows, by run and table."""
    return {(one.run, one.table): FlowState(one.state, _why(one), one.caught_up_at) for one in flows}


def _why(flow: LivingFlow) -> str | None:
    return in_one_line(flow.error["what"], flow.error["why"]) if flow.error else None


def _questions(project: Project) -> Iterator[tuple[str, Callable[[], Backlog | None]]]:
    """What to ask the sources that can be asked without their flow."""
    for table in project.graph:
        if table.reference is not None:
            yield table.name, partial(partial, reference_waiting, table.reference)
        elif table.source is not None and (ask := kind_of(table.source).backlog) is not None:
            yield table.name, partial(ask, table.source, project.config)


def _answered(table: str, ask: Callable[[], T]) -> T | None:
    """A source of the user's may raise: then it cannot be asked, and every other table is shown all the same."""
    try:
        return ask()
    except Exception as error:
        log.warning("backlog.unknown table=%s error=%s", table, error)
        return None


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

    def first_unread(self, name: str, position: Mapping[str, Any] | None) -> float | None:
        """When the oldest rows of an input that were not read from this position had come, as far as it noted that."""
        view = self._views.get(feed_of(name)) or self._views.get(name)
        read = position.get("snapshot") if position else None
        oldest = None
        for snapshot in view.ancestors(view.head()) if view else ():
            if snapshot.id == read:
                break
            oldest = snapshot
            if snapshot.parent == read:
                break
        if view is None or oldest is None:
            return None
        noted = self._at(name, view, oldest) if oldest.stamp else None
        return oldest.timestamp_ms / 1000 if noted is None else noted

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
