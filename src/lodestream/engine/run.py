"""`lode run`: one driver process that keeps every table of a pipeline up to date."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import SparkSession

from lodestream.config import EngineConfig
from lodestream.engine.attended import Attended
from lodestream.engine.build import Builder, new_run
from lodestream.engine.definitions import DefinitionWatch
from lodestream.engine.driver import Driver
from lodestream.engine.failures import Backoff
from lodestream.engine.listeners import Heard, house_listeners
from lodestream.engine.remedy import Remedy, files_of
from lodestream.engine.run_lease import RunLease, refuse_early
from lodestream.engine.runner import FlowEnd, Runner
from lodestream.engine.sinks import SinkEnd, SinkRunner, Sinks
from lodestream.engine.sizing import Sizer
from lodestream.engine.upkeep import Upkept, upkeep
from lodestream.errors import LodeError
from lodestream.names import feed_of
from lodestream.observe import EventLog, Listener, RunEnded, RunStarted, events_folder
from lodestream.pipeline import Graph
from lodestream.planning.gold_plans import refuse_unprovable
from lodestream.planning.keyed import keyed
from lodestream.planning.project import Project
from lodestream.runtime.broker import start_broker
from lodestream.runtime.java_process import java_ended, while_java_lives
from lodestream.runtime.progress import Progress, SilentProgress
from lodestream.runtime.session import start_session
from lodestream.serving.declared import sinks_of
from lodestream.serving.sink import Sink
from lodestream.sources.codecs.kinds import codec_kind_of

log = logging.getLogger(__name__)

# Seconds between looks at a table that another driver keeps: it cannot wake us.
_FOREIGN_POLL = 1.0


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended, and each of its flows."""

    run: str
    reason: str
    flows: dict[str, FlowEnd] = field(default_factory=dict)
    error: LodeError | None = None
    sinks: dict[str, SinkEnd] = field(default_factory=dict)

    @property
    def errors(self) -> list[LodeError]:
        """What went wrong, each thing once: first what ended the run as a whole.

        A blocked flow never ends a run: where one is left, the run was asked to stop, and did.
        """
        ends: list[FlowEnd | SinkEnd] = [*self.flows.values(), *self.sinks.values()]
        failed = [end.error for end in ends if end.error is not None and end.state == "stopped"]
        if self.error is None:
            return failed
        return [self.error, *(one for one in failed if type(one) is not type(self.error))]

    @property
    def exit_code(self) -> int:
        return self.errors[0].exit_code if self.errors else 0


@while_java_lives()
def run_pipeline(
    project: Project,
    *,
    once: bool = False,
    only: Sequence[str] = (),
    accept_gaps: Sequence[str] = (),
    adopt: Sequence[str] = (),
    take_over: bool = False,
    progress: Progress | None = None,
    listeners: Sequence[Listener] = (),
    stop: threading.Event | None = None,
    spark: SparkSession | None = None,
    exit_code: Callable[[RunEnd], int] = lambda end: end.exit_code,
) -> RunEnd:
    """Run until `stop` is set, everything is caught up (`once`), or nothing can go on.

    `exit_code` says what the process will end with, for the last event: Ctrl-C has a code of its own.
    Raises `AlreadyRuns` when another driver keeps one of the tables, unless it is to be taken over, and `JavaEnded`
    when Java is gone before the first batch; later, that is how the run ended.
    """
    progress = progress or SilentProgress()
    stop = stop or threading.Event()
    graph = project.graph.select(only) if only else project.graph
    decided = Decisions(_named(graph, accept_gaps), _named(graph, adopt))
    definitions = DefinitionWatch(project)  # before anything that takes long: an edit meanwhile must be told
    refuse_unprovable(project)
    declared = {table.name: sinks_of(table) for table in graph}
    if not take_over:
        refuse_early(project.config, graph.names)
    bootstrap = _bootstrap(project, graph, progress)
    spark = spark or start_session(project.config, app_name=f"lode-{project.pipeline.name}", progress=progress)
    _warm_up(spark, graph)
    run = new_run()
    lease = RunLease(project.config, spark, run, graph.names)
    lease.begin(over=take_over)
    try:
        events = EventLog(events_folder(project.config.state_dir), run, *listeners)
        builder = Builder(project, spark, run, bootstrap)
        runners = _runners(project, graph, builder, events, once, decided)
        with progress.step("Asking who keeps the tables"):
            lease.taken()
        hearing = house_listeners(Heard(project, spark, events))
        name = project.pipeline.name
        events.emit(RunStarted(pipeline=name, tables=tuple(graph.names), once=once, pid=os.getpid()))
        lease.report(events)
        sinks = _sinks(project, declared, runners, events, once)
        driver = Driver(
            runners,
            {name: graph.readers(name) for name in graph.names},
            workers=_workers(project),
            once=once,
            stop=stop,
            abandon=partial(_cancel, spark),
            lost=lambda: java_ended() is not None,
            published=sinks.wake,
        )
        hearing.start()
        attended = Attended(project, graph, run, runners, driver, lease, events, once=once, definitions=definitions)
        idle_work = None if once else upkeep(Upkept(project, spark, builder, runners, driver, events))
        try:
            sinks.start()
            with attended, _patience(progress, once, len(runners)):
                driver.run()
                sinks.close(stop, deliver=once)
        finally:
            sinks.close(stop, deliver=False)
            if idle_work is not None:
                idle_work.close()
            _close(runners)
    finally:
        lease.release()
    ended = java_ended()
    behind = sum(1 for one in sinks.ends().values() if one.state == "stopped")
    reason = ended.what if ended else _reason(runners, once, stop, behind)
    end = RunEnd(run, reason, {runner.name: runner.end() for runner in runners}, ended, sinks.ends())
    events.emit(RunEnded(reason=end.reason, exit_code=exit_code(end)))
    hearing.close(java=ended is None)
    events.close()
    return end


@contextmanager
def _patience(progress: Progress, once: bool, tables: int) -> Iterator[None]:
    """A person waits for the end of a run with --once: something moves all the while."""
    if not once:
        yield
        return
    with progress.step(f"Bringing {tables} tables up to date"):
        yield


def _close(runners: Sequence[Runner]) -> None:
    for runner in runners:
        try:
            runner.flow.close()
        except Exception as error:  # of a source of the user's: the others are closed, and the run tells how it ended
            log.warning("flow.unclosed table=%s error=%s", runner.name, error)


def _cancel(spark: SparkSession) -> None:
    with suppress(Exception):  # a Java process that is gone has no jobs
        spark.sparkContext.cancelAllJobs()


@dataclass(frozen=True, slots=True)
class Decisions:
    """What a person has decided for this run: each is recorded in the table it is about."""

    gaps: frozenset[str]
    adopted: frozenset[str]


def _named(graph: Graph, patterns: Sequence[str]) -> frozenset[str]:
    return frozenset(table.name for table in graph.select(patterns)) if patterns else frozenset()


def _runners(
    project: Project, graph: Graph, builder: Builder, events: EventLog, once: bool, decided: Decisions
) -> list[Runner]:
    config = project.config.engine
    runners = []
    for table in graph:
        upstream = [name for name in graph.inputs(table.name) if name in graph]
        runner = Runner(
            builder.flow(table),
            remedy=None if once else Remedy(files_of(table), by_inputs=table.tier == "gold"),
            remake=partial(builder.flow, table),
            depth=len(graph.upstream(table.name)),
            polled=_poll(graph, table.name, config.poll, bool(upstream)),
            sizer=Sizer(config.target if not once else max(config.target, 10.0), config.max_batch_rows),
            backoff=Backoff(config.retry_wait, retry_limit(config, once=once)),
            events=events,
            accept_gap=table.name in decided.gaps,
            adopt=table.name in decided.adopted,
            paced=not once,
        )
        runners.append(runner)
    return runners


def _sinks(
    project: Project, declared: Mapping[str, Sequence[Sink]], runners: Sequence[Runner], events: EventLog, once: bool
) -> Sinks:
    """What is published goes to the sinks of its table, while this run keeps it."""
    if not any(declared.values()):
        return Sinks(())
    from lodestream.serving.deliver import Deliverer  # PyIceberg takes a second to load
    from lodestream.serving.feed import TableFeed
    from lodestream.tables.sink_positions import SinkPositions

    positions, config = SinkPositions(project.config), project.config.engine
    found = []
    for runner in runners:
        feed = feed_of(runner.name) if keyed(project.graph, runner.name) else runner.name
        for sink in declared[runner.name]:
            deliverer = Deliverer(TableFeed(project.config, runner.name, feed), sink, positions)
            backoff = Backoff(config.retry_wait, retry_limit(config, once=once))
            ours = partial(_kept, runner)
            one = SinkRunner(runner.name, sink.label, deliverer, backoff=backoff, events=events, ours=ours)
            found.append(one)
    return Sinks(found)


def _kept(runner: Runner) -> bool:
    return runner.taken_over is None


def retry_limit(config: EngineConfig, *, once: bool) -> float:
    """How long a passing trouble is retried: a person waits for the end of a run with --once."""
    return min(config.retry_for, config.retry_once_for) if once else config.retry_for


def _poll(graph: Graph, name: str, interval: float, has_upstream: bool) -> float | None:
    """Flows fed by tables of this run are woken; what comes from outside must be looked at."""
    inputs = graph.inputs(name)
    if not inputs:
        return interval
    outside = [one for one in inputs if one not in graph]
    return _FOREIGN_POLL if outside or not has_upstream else None


def _workers(project: Project) -> int:
    # A small batch keeps about two cores busy with planning and commits: more side by side only get in the way.
    return project.config.engine.workers or max(1, (os.cpu_count() or 2) // 2)


def _warm_up(spark: SparkSession, graph: Graph) -> None:
    """Decoders get ready while Bronze fetches its first rows, not when Silver waits for them."""
    kinds = [codec_kind_of(table.decode) for table in graph if table.decode is not None]
    wanted = {kind.warm_up for kind in kinds if kind.warm_up is not None}

    def warm_up_quietly() -> None:
        for warm_up in wanted:
            with suppress(Exception):  # whoever needs the decoder meets the error again, where it can be reported
                warm_up(spark)

    if wanted:
        threading.Thread(target=warm_up_quietly, name="lode-warm-up", daemon=True).start()


def _bootstrap(project: Project, graph: Graph, progress: Progress) -> str:
    given = project.config.kafka.bootstrap
    wanted = any(table.source is not None and table.source.own_topics for table in graph)
    if given != "embedded" or not wanted:
        return given
    return start_broker(project.config, progress).bootstrap


def _reason(runners: Sequence[Runner], once: bool, stop: threading.Event, sinks_behind: int = 0) -> str:
    failed = sum(1 for runner in runners if runner.error and runner.state == "stopped")
    if failed and all(runner.taken_over is not None for runner in runners):
        return "another run keeps the tables"
    if failed:
        return f"{failed} of {len(runners)} flows stopped on an error"
    if sinks_behind:
        return f"{sinks_behind} sink{'' if sinks_behind == 1 else 's'} could not be brought up to date"
    if once and all(runner.state == "done" for runner in runners):
        return "caught up"
    return "asked to stop" if stop.is_set() else "nothing left to do"
