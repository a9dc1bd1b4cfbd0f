"""A pipeline in a test: given rows, when it runs, then the tables. Real flows on real tables, no broker needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from lodestream import clock, failpoints
from lodestream.config import CatalogConfig, Config, nearest
from lodestream.engine.build import Builder, new_run
from lodestream.engine.failures import explain
from lodestream.errors import ConfigError, LodeError
from lodestream.flows.assemblies.bronze import bronze_flow
from lodestream.flows.flow import Flow
from lodestream.names import feed_of
from lodestream.pipeline import Pipeline, Table
from lodestream.planning.keyed import keyed
from lodestream.planning.project import Project, open_project
from lodestream.runtime.broker import BrokerInfo
from lodestream.runtime.session import start_session
from lodestream.serving.deliver import Deliverer
from lodestream.serving.feed import TableFeed
from lodestream.serving.sink import Sink
from lodestream.tables.lake import Lake
from lodestream.tables.sink_positions import SinkPositions
from lodestream.testing.broker import new_topics, send
from lodestream.testing.events import Event, GivenEvents
from lodestream.testing.reading import read_letters, read_rows
from lodestream.testing.rows import put_rows
from lodestream.testing.run_once import copied, quick

# The instants of a batch at which a process can die, in order.
POINTS = {
    "plan": "plan.after",
    "stage": "stage.before",
    "staged": "stage.after",
    "publish": "publish.before",
    "published": "publish.after",
}
_ROWS = 1_000_000


class _Killed(BaseException):
    """The process is gone; nothing may catch it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one event: refused for these reasons, or accepted."""

    event: Any
    reasons: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        return not self.reasons


class Sandbox:
    """One pipeline, in a folder of its own with an empty catalog. Spark starts once for all sandboxes of a process.

    A table of a remote source holds what was given to it, and nothing is connected to; `broker` sends what is given to
    a topic through a real one instead.
    """

    def __init__(
        self, project: Path | Pipeline, folder: Path, *, profile: str | None = None, broker: BrokerInfo | None = None
    ) -> None:
        self._project = _opened(project, folder, profile)
        self._broker = broker
        self._sources: dict[str, GivenEvents] = {}
        self._fixed: set[str] = set()
        self._flows: dict[str, Flow] = {}
        self._waiting: dict[str, list[Event]] = {}
        self._taken: dict[str, list[Event]] = {}
        for table in self._project.graph:
            self._prepare(table)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def config(self) -> Config:
        return self._project.config

    def close(self) -> None:
        self._stop()
        clock.freeze(None)

    def given(self, table: str, rows: Iterable[Any], *, columns: str | None = None) -> None:
        """Events for a Bronze table: mappings (sent as JSON), bytes, text, None, or `Event`; the next run takes them.

        Rows for any other table stand in it as they are, and its own function, query or file is left alone.
        """
        found = self._table(table)
        if found.tier == "bronze":
            self._give_events(found, [Event.of(row) for row in rows], columns)
        else:
            self._give_rows(found, list(rows), columns)

    def run(self, *, only: Sequence[str] = ()) -> None:
        """Bring every table up to date, in the order of the graph; raises what stops one."""
        for flow in self._built().values():
            if not only or flow.name in only:
                self._settle(flow)
        if self._waiting:
            self._taken, self._waiting = self._waiting, {}

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table, in no order; `NotMade` when there is no such table."""
        return read_rows(self.config, self._project.graph, table)

    def dead(self, table: str) -> list[dict[str, Any]]:
        """The open dead letters of a table."""
        return read_letters(self.config, self._project.graph, table)

    def deliver(self, table: str, sink: Sink) -> int:
        """Give the table's changes to a sink, as a run would, and say in how many deliveries.

        `run` delivers to nobody: a test talks to what it names, not to what the pipeline declares.
        """
        name = self._table(table).name
        feed = feed_of(name) if keyed(self._project.graph, name) else name
        deliverer = Deliverer(TableFeed(self.config, name, feed), sink, SinkPositions(self.config))
        try:
            return deliverer.catch_up().deliveries
        finally:
            deliverer.close()

    def judge(self, table: str, events: Sequence[Any]) -> list[Verdict]:
        """What the table and its contract make of each event, in one batch."""
        found = self._table(table)
        bronze = [name for name in self._project.graph.upstream(found.name) if self._table(name).tier == "bronze"]
        if len(bronze) != 1 or self._broker is not None:
            raise ConfigError(
                f"{table} cannot judge events",
                why="it does not read one Bronze table, or a broker numbers the events",
                fix="give the events to their Bronze tables, run, and look at dead(table)",
            )
        first = len(self._sources[bronze[0]].events) if bronze[0] in self._sources else 0
        self.given(bronze[0], events)
        self.run(only=[*self._project.graph.upstream(found.name), found.name])
        reasons: dict[int, tuple[str, ...]] = {}
        for letter in self.dead(table):
            number = letter["offset"] if letter["offset"] is not None else letter["row"] - 1
            reasons[number] = (*reasons.get(number, ()), *letter["reasons"])
        return [Verdict(event, reasons.get(first + number, ())) for number, event in enumerate(events)]

    def kill_at(self, point: str, table: str) -> None:
        """Run, and die at that instant of the table's next batch. The next `run` is a new process."""
        if point not in POINTS:
            raise ConfigError(f"no instant of a batch is called {point!r}", fix=f"one of {', '.join(POINTS)}")
        name = self._table(table).name
        for target in (name, feed_of(name)):  # a keyed table publishes its feed
            failpoints.arm(POINTS[point], target, _die)
        try:
            self.run()
        except _Killed:
            return
        finally:
            failpoints.disarm()
            self._stop()
        raise ConfigError(
            f"{table} did not reach {point!r}", why="it had no new batch", fix="give it something new first"
        )

    def replay_last_batch(self) -> None:
        """The events of the last run arrive once more, as from a producer that tried again; then everything runs."""
        if not self._taken:
            raise ConfigError(
                "there is no batch to replay", why="no run has taken events yet", fix="given(), then run()"
            )
        for table, events in dict(self._taken).items():
            self.given(table, events)
        self.run()

    def freeze(self, moment: datetime) -> None:
        """Stop the clock: events given from now on arrive at this moment, and reference rows are loaded at it."""
        clock.freeze(moment)

    def _table(self, name: str) -> Table:
        names = self._project.graph.names
        if name not in names:
            close = nearest(name, list(names))
            raise ConfigError(
                f"the pipeline declares no table {name!r}",
                why=f"it declares {', '.join(names)}",
                fix=f"did you mean {close}?" if close else None,
            )
        return self._project.graph[name]

    def _prepare(self, table: Table) -> None:
        """A table that holds nothing yet, or an empty topic of the broker."""
        if self._broker is not None and self._own_topics(table):
            new_topics(self._broker.bootstrap, self._own_topics(table), self.config.kafka.partitions)
        elif _is_remote(table) and table.source is not None and table.source.ddl is not None:
            self._sources[table.name] = GivenEvents(table)

    def _own_topics(self, table: Table) -> tuple[str, ...]:
        """The topics that the test's broker has for the table: none without a broker."""
        return table.source.own_topics if self._broker is not None and table.source is not None else ()

    def _give_events(self, table: Table, events: list[Event], columns: str | None) -> None:
        self._refuse_unencoded(table, events)
        self._waiting.setdefault(table.name, []).extend(events)
        if self._broker is not None and self._own_topics(table):
            send(self._broker.bootstrap, self._own_topics(table)[0], events)
            return
        if table.name not in self._sources:
            self._stop()  # a flow that read the declared source was built already
            self._sources[table.name] = GivenEvents(table, columns)
        self._sources[table.name].events.extend(events)

    def _refuse_unencoded(self, table: Table, events: Sequence[Event]) -> None:
        readers = [self._table(name) for name in self._project.graph.readers(table.name)]
        other = [one.decode for one in readers if one.decode is not None and not one.decode.takes_json]
        if other and any(isinstance(event.value, Mapping) for event in events):
            raise ConfigError(
                f"{table.name} is read as {type(other[0]).__name__}, and a mapping is sent as JSON",
                fix="give bytes as they come from the source",
            )

    def _give_rows(self, table: Table, rows: list[Mapping[str, Any]], columns: str | None) -> None:
        if keyed(self._project.graph, table.name):
            raise ConfigError(
                f"rows cannot be put into {table.name}",
                why="it is changed by key, and its readers follow its change feed",
                fix="give events to the Bronze table that it is made from",
            )
        self._fixed.add(table.name)
        self._stop()
        put_rows(Lake(self._session().newSession(), self.config.catalog.name), table, rows, columns)

    def _session(self) -> Any:
        # Each time: sessions that are opened later have the catalog of whoever asked last.
        return start_session(self.config, app_name=f"test-{self._project.pipeline.name}")

    def _built(self) -> dict[str, Flow]:
        if not self._flows:
            spark, run = self._session(), new_run()
            bootstrap = self._broker.bootstrap if self._broker else self.config.kafka.bootstrap
            builder = Builder(self._project, spark, run, bootstrap)
            for table in self._project.graph:
                if table.name in self._sources:
                    lake, source = Lake(spark.newSession(), self.config.catalog.name), self._sources[table.name]
                    source.spark = lake.spark
                    self._flows[table.name] = bronze_flow(lake, table, run, source, source.ddl)
                elif table.name not in self._fixed and (self._own_topics(table) or not _is_remote(table)):
                    self._flows[table.name] = builder.flow(table)
        return self._flows

    def _settle(self, flow: Flow) -> None:
        try:
            while flow.step(_ROWS) is not None:
                pass
        except Exception as error:
            self._stop()
            if isinstance(error, LodeError):
                raise
            raise (flow.explain(error) or explain(error, flow.name)) from error

    def _stop(self) -> None:
        """The process ends; what it has not published is lost."""
        for flow in self._flows.values():
            flow.close()
        self._flows = {}


def _opened(project: Path | Pipeline, folder: Path, profile: str | None) -> Project:
    if isinstance(project, Pipeline):
        return Project(quick(Config(root=folder)), project, project.graph())
    config = copied(project, folder, profile)
    # Whatever the profile names: a test writes to its own folder, with Spark in its own process.
    own = CatalogConfig(name=config.catalog.name)
    return open_project(quick(replace(config, catalog=own, spark=replace(config.spark, master=None))))


def _is_remote(table: Table) -> bool:
    return table.source is not None and table.source.remote


def _die() -> None:
    raise _Killed
