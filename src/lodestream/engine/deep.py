"""`lode plan --deep`: Spark itself reads every function and query, over empty tables in a catalog of their own.

Each table is made as a run would make it, inputs before readers, so that the columns of one are what the next one
reads. Nothing of the project's own catalog, warehouse or sources is touched, and nothing stays behind.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from lodestream.config import CatalogConfig
from lodestream.engine.blame import blamed
from lodestream.engine.build import Builder, new_run
from lodestream.errors import Transient
from lodestream.flows.assemblies.silver_table import SilverTable
from lodestream.flows.code.plan_steps import drops
from lodestream.flows.columns.shape import ddl_of
from lodestream.flows.judging.judge import filtered_by
from lodestream.pipeline import Finding, Table, parse_partition
from lodestream.pipeline.function_shape import dropping_call
from lodestream.planning.checks import missing_column
from lodestream.planning.plan import Deep
from lodestream.planning.project import Project, contract_of
from lodestream.runtime.progress import Progress, SilentProgress
from lodestream.runtime.session import start_session
from lodestream.tables.lake import Lake


def ask_spark(project: Project, progress: Progress | None = None) -> Deep:
    """Everything that Spark finds wrong, all of it at once."""
    progress = progress or SilentProgress()
    folder = Path(tempfile.mkdtemp(prefix="lode-plan-"))
    # A catalog of its own: the tables are made for the look, whatever the project's own are.
    config = replace(project.config, root=folder, catalog=CatalogConfig(name=project.config.catalog.name))
    spark = start_session(config, app_name=f"lode-plan-{project.pipeline.name}", progress=progress)
    look = _Look(replace(project, config=config), spark)
    try:
        with progress.step("Asking Spark", len(project.graph.tables), "tables") as step:
            for table in project.graph:
                look.at(table)
                step.advance()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Deep(tuple(look.findings), frozenset(look.accepted), look.ways)


class _Look:
    def __init__(self, project: Project, spark: SparkSession) -> None:
        self._project = project
        self._builder = Builder(project, spark, new_run(), "")
        self._lake = Lake(spark.newSession(), project.config.catalog.name)
        graph = project.graph
        self._missing = {name: name for name in graph.everything if name not in graph.names}
        self.findings: list[Finding] = []
        self.accepted: set[str] = set()
        self.ways: dict[str, tuple[str, str, str | None]] = {}

    def at(self, table: Table) -> None:
        wanting = [one for one in self._project.graph.inputs(table.name) if one in self._missing]
        if wanting:
            self._missing[table.name] = self._missing[wanting[0]]
            self.findings.append(_waiting(table, self._missing[wanting[0]]))
            return
        try:
            found = list(self._made(table))
        except Transient as error:
            found = [_unread(table, error)]
        except Exception as error:
            found = [blamed(table, error)]
        self.findings += found
        if any(one.severity == "error" for one in found):
            self._stand_in(table)
        else:
            self.accepted.add(table.name)

    def _made(self, table: Table) -> Iterator[Finding]:
        """What is wrong with a table that Spark can read all the same; raises what it cannot."""
        if table.tier == "bronze" and table.source is not None and table.source.ddl is not None:
            self._lake.open(table.name, table.source.ddl, partition_by=table.partition_by)
            return
        # A Gold table's columns are known once it is made: its partitions are looked at after that.
        if table.tier == "silver" and table.kind != "reference":
            yield from _silver(self._builder.silver(table))
        elif table.tier == "gold":
            kept = self._builder.gold(replace(table, partition_by=()))
            kept.flow.prepare()
            if (plan := kept.table.plan) is not None:
                self.ways[table.name] = (plan.strategy, plan.reason, plan.cheaper)
            yield from self._partitioned(table)
        else:
            self._builder.flow(table).parts.home.open()

    def _partitioned(self, table: Table) -> Iterator[Finding]:
        made = self._lake.whole(table.name)
        wrong = _partitions(table, made.columns)
        yield from wrong
        if table.partition_by and not wrong:
            self._lake.open(f"{table.name}__parts", ddl_of(made.schema), partition_by=table.partition_by)

    def _stand_in(self, table: Table) -> None:
        """A table that is wrong but has a contract is made of it, so that its readers are looked at too."""
        contract = contract_of(table)
        try:
            if contract is None or self._builder.feeds(table.name):
                raise LookupError(table.name)
            self._lake.open(table.name, contract.ddl())
        except Exception:
            self._missing[table.name] = table.name


def _silver(silver: SilverTable) -> Iterator[Finding]:
    table, terms = silver.flow.table, silver.terms
    rows, contract = terms.rows.over_nothing(), terms.contract
    columns = [one.name for one in contract] if contract else rows.columns
    held = {one.lower() for one in columns}
    wrong = [missing_column(table, "keys", one, columns) for one in terms.keys if one.lower() not in held]
    wrong += [
        missing_column(table, "sequence_by", one, rows.columns) for one in table.sequence_by if one not in rows.columns
    ]
    if not table.history:
        wrong += _partitions(table, columns)
    yield from wrong
    if wrong:
        return
    if terms.judges:
        terms.judge.conformed(rows)
    elif table.filters:
        rows.select(filtered_by(table.filters))
    silver.flow.parts.home.open(guest=True)
    if terms.rows.accounts and not table.allow_no_rows and drops(rows):
        yield _dropping(table)


def _partitions(table: Table, columns: list[str]) -> list[Finding]:
    named = [parse_partition(one).column.partition(".")[0] for one in table.partition_by]
    held = {one.lower() for one in columns}
    return [missing_column(table, "partition_by", one, columns) for one in named if one.lower() not in held]


def _dropping(table: Table) -> Finding:
    line = dropping_call(table.function) if table.function else None
    location = replace(table.location, line=line) if line else table.location
    return Finding(
        "error",
        table.name,
        f"{table.name}: it drops rows that nothing accounts for",
        "its plan has a filter, a limit or a removal of duplicates; a batch that it drops a row of is refused",
        "declare the condition instead: filters={'name': 'rows to keep'}; for duplicates: keys=",
        location,
    )


def _waiting(table: Table, cause: str) -> Finding:
    return Finding(
        "warning",
        table.name,
        f"{table.name} was not read by Spark",
        f"it is made from {cause}, which is wrong",
        f"correct {cause}, then ask again",
        table.location,
    )


def _unread(table: Table, error: Transient) -> Finding:
    return Finding(
        "warning", table.name, f"{table.name} was not read by Spark", error.what, error.fix or "", table.location
    )
