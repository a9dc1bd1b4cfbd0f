"""`lode dead`: the letters of a project's tables, replayed or discarded by the flow as it is now."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from lodestream.config import nearest
from lodestream.errors import ConfigError, LodeError
from lodestream.names import dead_of
from lodestream.observe import DeadDiscarded, DeadReplayed, EventLog, events_folder
from lodestream.pipeline import Table
from lodestream.planning.project import Project
from lodestream.recovery.choice import STATES, Choice, State
from lodestream.recovery.letters import Letters, read_letters
from lodestream.runtime.progress import Progress, SilentProgress
from lodestream.tables.inspect import Inspector

if TYPE_CHECKING:
    from lodestream.flows.guests.visit import Visited
    from lodestream.recovery.replay import Replayed

T = TypeVar("T")


def dead_letters(
    project: Project, table: str | None, choice: Choice, states: tuple[State, ...] = STATES, *, content: bool = False
) -> list[Letters]:
    """The letters of one table, or of every table that has any. Needs no JVM."""
    names = [_named(project, table).name] if table else [one.name for one in project.graph if one.tier == "silver"]
    inspector = Inspector(project.config)
    found = (read_letters(inspector, name, choice, states, content=content) for name in names)
    return [one for one in found if one is not None]


def replay_dead(
    project: Project, table: str, choice: Choice, *, dry_run: bool = False, progress: Progress | None = None
) -> Replayed:
    """Judge the chosen letters again and publish what passes now."""
    from lodestream.recovery.replay import Replay

    def work(table: Visited, events: EventLog) -> Replayed:
        done = Replay(table, choice, dry_run=dry_run).run(progress)
        if not dry_run:
            events.emit(
                DeadReplayed(
                    table.name,
                    letters=done.replayed,
                    failing=done.failing,
                    rows=dict(done.rows),
                    batches=tuple(done.batches),
                )
            )
        return done

    return _as_guest(project, table, work, progress)


def discard_dead(
    project: Project, table: str, choice: Choice, *, note: str | None = None, progress: Progress | None = None
) -> int:
    """Mark the chosen letters as not worth a replay; how many they were."""
    from lodestream.recovery.discard import discard

    def work(table: Visited, events: EventLog) -> int:
        found = discard(table, choice, note=note)
        events.emit(DeadDiscarded(table.name, letters=found, note=note))
        return found

    return _as_guest(project, table, work, progress)


def _as_guest(project: Project, table: str, work: Callable[[Visited, EventLog], T], progress: Progress | None) -> T:
    from lodestream.runtime.java_process import while_java_lives

    declared = _named(project, table)
    with while_java_lives():
        return _worked(project, declared, work, progress)


def _worked(project: Project, declared: Table, work: Callable[[Visited, EventLog], T], progress: Progress | None) -> T:
    from lodestream.engine.build import Builder, new_run
    from lodestream.engine.failures import explain
    from lodestream.runtime.session import start_session

    spark = start_session(project.config, app_name="lode-dead", progress=progress or SilentProgress())
    run = new_run()
    if declared.kind == "reference":
        raise ConfigError(f"{declared.name} has no dead letters", why="only Silver tables refuse rows")
    silver = Builder(project, spark, run, project.config.kafka.bootstrap).silver(declared)
    flow = silver.flow
    events = EventLog(events_folder(project.config.state_dir), run)
    try:
        return work(silver.visited, events)
    except LodeError:
        raise
    except Exception as error:
        raise (flow.explain(error) or explain(error, flow.name)) from error
    finally:
        events.close()
        flow.close()


def _named(project: Project, table: str) -> Table:
    """The declared Silver table; the tier may be left out, and its dead letters may be named instead."""
    silver = {one.name: one for one in project.graph if one.tier == "silver"}
    spellings = {word: one for one in silver.values() for word in (one.name, dead_of(one.name))}
    found = spellings.get(table) or spellings.get(f"silver.{table}")
    if found is None:
        close = nearest(table, list(silver))
        raise ConfigError(
            f"{table} is no Silver table of this pipeline",
            why=f"the Silver tables are {', '.join(silver) or 'none'}",
            fix=f"did you mean {close}?" if close else "`lode plan` shows every table",
        )
    return found
