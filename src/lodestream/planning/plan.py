"""`lode plan`: what would run, how each table is kept, and what is wrong with the declarations. No JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lodestream.pipeline import Finding, Graph, Location, Table, lint
from lodestream.pipeline.options import missing_file
from lodestream.planning.checks import static_findings
from lodestream.planning.gold_plans import forced_findings, gold_way, unkept_findings
from lodestream.planning.keyed import keyed, silver_way
from lodestream.planning.project import Project, contract_of
from lodestream.planning.reader_promises import Look, promise_findings, stored_properties
from lodestream.planning.rebuilds import PlannedChange, planned_changes
from lodestream.planning.stored_tables import answering, stored_columns, stored_findings
from lodestream.planning.unfilled import unfilled_findings
from lodestream.planning.unfit import unfit


@dataclass(frozen=True, slots=True)
class PlannedTable:
    name: str
    tier: str
    kind: str
    inputs: tuple[str, ...]
    lookups: tuple[str, ...]
    source: str | None
    strategy: str
    reason: str
    cheaper: str | None
    every: float | None
    owner: str | None
    contract: str | None
    keys: tuple[str, ...]
    partition_by: tuple[str, ...]
    location: str
    sinks: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Plan:
    pipeline: str
    tables: tuple[PlannedTable, ...]
    findings: tuple[Finding, ...]
    changes: tuple[PlannedChange, ...] = ()

    @property
    def blocked(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Deep:
    """What Spark said of the declarations: `accepted` tables it could read, and the way that their flows chose."""

    findings: tuple[Finding, ...] = ()
    accepted: frozenset[str] = frozenset()
    ways: Mapping[str, tuple[str, str, str | None]] = field(default_factory=dict)


def make_plan(project: Project, look: Look | None = None, deep: Deep | None = None) -> Plan:
    """`look` shows the stored tables' properties; without it they are read from the catalog, by Python alone.

    `deep` is what Spark said of the declarations, when it was asked.
    """
    deep = deep or Deep()
    tables = tuple(_decided(_planned(project, table), deep) for table in project.graph)
    promises = promise_findings(project, look or stored_properties(project.config))
    columns = stored_columns(project.config)
    stored = stored_findings(project, columns)
    found = [
        *_undeclarable(project),
        *static_findings(project, answering(columns), deep.accepted),
        *forced_findings(project),
    ]
    found += [*unkept_findings(project), *_unenforceable(project), *_missing_files(project), *stored]
    found += [*unfilled_findings(project), *promises, *lint(project.graph), *_sink_findings(project)]
    told = {(one.table, one.location) for one in found if one.severity == "error"}
    found += [one for one in deep.findings if (one.table, one.location) not in told]
    ordered = tuple(sorted(found, key=lambda finding: finding.severity))
    return Plan(project.pipeline.name, tables, ordered, planned_changes(project))


def _undeclarable(project: Project) -> Iterator[Finding]:
    for name, error in project.problems:
        location = Location(error.file, error.line or 1) if error.file else project.pipeline.location
        what = error.what.removeprefix(f"{location}: ")
        what = what if name in what else f"{name}: {what}"
        yield Finding("error", name, what, error.why or "", error.fix or "", location)


def _decided(table: PlannedTable, deep: Deep) -> PlannedTable:
    """Without Spark the columns of an input may be unknown; with it, the way is the one that a run would take."""
    way = deep.ways.get(table.name)
    return replace(table, strategy=way[0], reason=way[1], cheaper=way[2]) if way else table


def _unenforceable(project: Project) -> Iterator[Finding]:
    for table in project.graph:
        error = unfit(project.graph, table)
        if error is not None:
            location = Location(error.file, error.line) if error.file and error.line else table.location
            what = error.what.removeprefix(f"{location}: ")
            yield Finding("error", table.name, what, error.why or "", error.fix or "", location)


def _missing_files(project: Project) -> Iterator[Finding]:
    """Reference data may come and go while a run goes on, so its absence is no error of the declaration."""
    for table in project.graph:
        file = table.reference.file if table.reference else None
        absent = missing_file("path", file, table.location) if file else None
        if absent is not None:
            what = absent.what.removeprefix(f"{table.location}: ")
            why = f"{absent.why}; a run blocks {table.name} until it is there, and keeps the rows it has"
            yield Finding("error", table.name, f"{table.name}: {what}", why, absent.fix or "", table.location)


def _planned(project: Project, table: Table) -> PlannedTable:
    contract = contract_of(table)
    strategy, reason, cheaper = _strategy(project, table)
    return PlannedTable(
        name=table.name,
        tier=table.tier,
        kind=table.kind,
        inputs=project.graph.inputs(table.name),
        lookups=project.graph.lookups(table.name),
        source=table.source.describe() if table.source else None,
        strategy=strategy,
        reason=reason,
        cheaper=cheaper,
        every=table.every,
        owner=table.owner or (contract.owner if contract else None),
        contract=contract.title if contract else None,
        keys=table.keys or (contract.keys if contract else ()),
        partition_by=table.partition_by,
        location=str(table.location),
        sinks=_sinks(table),
    )


def _sinks(table: Table) -> tuple[str, ...]:
    exported = (f"Parquet {table.export}",) if table.export else ()
    return (*(one.describe() for one in table.sinks), *exported)


def _sink_findings(project: Project) -> Iterator[Finding]:
    for table in project.graph:
        for sink in table.sinks:
            for problem in sink.problems():
                what = f"{table.name}: sink {sink.label}: {problem}"
                why, fix = "a run would not start with it", "correct it where sinks= of the table names it"
                yield Finding("error", table.name, what, why, fix, table.location)


def _strategy(project: Project, table: Table) -> tuple[str, str, str | None]:
    if table.tier == "bronze":
        return "append", "events are captured as they come", None
    if table.kind == "reference":
        return "reload", "replaced in one step when its file changes", None
    if table.tier == "silver":
        return silver_way(project.graph, table)
    return gold_way(project, table)


def append_only(graph: Graph, name: str) -> bool:
    """Whether a table only ever grows, so that its appended rows say everything."""
    table = graph[name]
    return table.tier in ("bronze", "silver") and table.kind != "reference" and not keyed(graph, name)


def contract_keys(table: Table) -> tuple[str, ...]:
    contract = contract_of(table)
    return contract.keys if contract else ()
