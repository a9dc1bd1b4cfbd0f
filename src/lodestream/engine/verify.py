"""`lode verify`: the Gold tables of a project against their queries. Reads only, also beside a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from lodestream.config import nearest
from lodestream.contracts.masking import sensitive
from lodestream.errors import ConfigError, DeclarationError, LodeError, Transient
from lodestream.maintenance.step import Interrupted
from lodestream.pipeline import Table
from lodestream.planning.project import Project, contract_of
from lodestream.recovery.verify.result import UNVERIFIABLE, Verification
from lodestream.runtime.progress import Progress, SilentProgress

if TYPE_CHECKING:
    from lodestream.engine.build import Builder
    from lodestream.recovery.verify.compare import Sampling


def verify_tables(
    project: Project,
    patterns: Sequence[str] = (),
    *,
    keys: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Iterator[Verification]:
    """Each named Gold table, or all; `keys` compares so many, chosen by the seed. Spark starts if it must."""
    progress = progress or SilentProgress()
    chosen = gold_tables(project, patterns)
    return _verified(project, chosen, keys, seed, progress)


def _verified(
    project: Project, chosen: Sequence[Table], keys: int | None, seed: int, progress: Progress
) -> Iterator[Verification]:
    from lodestream.runtime.java_process import while_java_lives
    from lodestream.tables.inspect import Inspector  # a start of `lode run` does not wait for it

    inspector = Inspector(project.config)
    builder: Builder | None = None
    for table in chosen:
        view = inspector.look(table.name)
        if view is None or view.head() is None:
            yield Verification(table.name, UNVERIFIABLE, "it has not been made yet")
            continue
        with while_java_lives():
            builder = builder or _builder(project, progress)
            with progress.step(f"Verifying {table.name}"):
                found = verify_one(project, builder, table, _sampling(keys, seed))
        yield found


def verify_one(
    project: Project,
    builder: Builder,
    table: Table,
    sampling: Sampling | None = None,
    proceed: Callable[[], None] = lambda: None,
) -> Verification:
    """One table, read by a flow of its own. What keeps it from being verified is an answer, unless it may pass."""
    from lodestream.engine.failures import FileGone, explain
    from lodestream.recovery.verify.table import verify_table
    from lodestream.runtime.java_process import java_ended

    if table.tier != "gold":
        raise ConfigError(f"{table.name} is no Gold table")
    kept = builder.gold(table, beside="verify")
    flow = kept.flow
    try:
        return verify_table(kept.table, sampling=sampling, hide=hidden_columns(project, table), proceed=proceed)
    except Interrupted:
        raise
    except Exception as raw:
        if java_ended(raw) is not None:
            raise  # of which `while_java_lives` tells, or the run that this goes on beside
        error = flow.explain(raw) or explain(raw, table.name)
        if isinstance(error, Transient) and not isinstance(error, FileGone):
            raise error from raw
        return Verification(table.name, UNVERIFIABLE, _said(error))
    finally:
        flow.close()


def gold_tables(project: Project, patterns: Sequence[str]) -> list[Table]:
    """The Gold tables that the patterns name; each must name one."""
    gold = [table for table in project.graph if table.tier == "gold"]
    if not patterns:
        return gold
    for pattern in patterns:
        named = project.graph.select([pattern])
        if not any(table.tier == "gold" for table in named):
            close = nearest(pattern, [name for table in gold for name in (table.name, table.short)])
            raise DeclarationError(
                f"{named.names[0]} is no Gold table",
                why=f"only Gold equals a query; the Gold tables are {', '.join(one.name for one in gold) or 'none'}",
                fix=f"did you mean {close}?" if close else "name a Gold table, or none for all of them",
            )
    chosen = project.graph.select(patterns)
    return [table for table in chosen if table.tier == "gold"]


def hidden_columns(project: Project, table: Table) -> frozenset[str]:
    """The columns that a contract of the table or of its inputs protects, by name: samples must not show them."""
    read = [project.graph[name] for name in project.graph.inputs(table.name)]
    contracts = [contract for one in (table, *read) if (contract := contract_of(one)) is not None]
    return frozenset(path.split(".")[0].split("[")[0] for contract in contracts for path in sensitive(contract))


def _builder(project: Project, progress: Progress) -> Builder:
    from lodestream.engine.build import Builder, new_run
    from lodestream.runtime.session import start_session

    spark = start_session(project.config, app_name="lode-verify", progress=progress)
    return Builder(project, spark, new_run(), project.config.kafka.bootstrap)


def _sampling(keys: int | None, seed: int) -> Sampling | None:
    from lodestream.recovery.verify.compare import Sampling

    return Sampling(keys, seed) if keys is not None else None


def _said(error: LodeError) -> str:
    what = error.what.strip().splitlines()[-1]
    return f"{what} ({error.why.strip().splitlines()[0]})" if error.why else what
