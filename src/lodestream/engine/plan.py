"""`lode plan`: what would run, how each table is kept, and what is wrong with the declarations. No JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lodestream.engine.checks import static_findings
from lodestream.engine.gold_plans import forced_findings, gold_way, unkept_findings
from lodestream.engine.keyed import keyed, silver_way
from lodestream.engine.project import Project, contract_of
from lodestream.engine.promises import Look, promise_findings, stored_properties
from lodestream.engine.rebuilds import PlannedChange, planned_changes
from lodestream.engine.stored_tables import answering, stored_columns, stored_findings
from lodestream.engine.unfilled import unfilled_findings
from lodestream.engine.unfit import unfit
from lodestream.pipeline import Files, Finding, Graph, Kafka, Table, lint


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
    found = [*static_findings(project, answering(columns), deep.accepted), *forced_findings(project)]
    found += [*unkept_findings(project), *_unenforceable(project), *stored]
    found += [*unfilled_findings(project), *promises, *lint(project.graph)]
    told = {(one.table, one.location) for one in found if one.severity == "error"}
    found += [one for one in deep.findings if (one.table, one.location) not in told]
    ordered = tuple(sorted(found, key=lambda finding: finding.severity))
    return Plan(project.pipeline.name, tables, ordered, planned_changes(project))


def _decided(table: PlannedTable, deep: Deep) -> PlannedTable:
    """Without Spark the columns of an input may be unknown; with it, the way is the one that a run would take."""
    way = deep.ways.get(table.name)
    return replace(table, strategy=way[0], reason=way[1], cheaper=way[2]) if way else table


def _unenforceable(project: Project) -> Iterator[Finding]:
    for table in project.graph:
        error = unfit(project.graph, table)
        if error is not None:
            yield Finding("error", table.name, error.what, error.why or "", error.fix or "", table.location)


def _planned(project: Project, table: Table) -> PlannedTable:
    contract = contract_of(table)
    strategy, reason, cheaper = _strategy(project, table)
    return PlannedTable(
        name=table.name,
        tier=table.tier,
        kind=table.kind,
        inputs=project.graph.inputs(table.name),
        lookups=project.graph.lookups(table.name),
        source=_source(table),
        strategy=strategy,
        reason=reason,
        cheaper=cheaper,
        every=table.every,
        owner=table.owner or (contract.owner if contract else None),
        contract=contract.title if contract else None,
        keys=table.keys or (contract.keys if contract else ()),
        partition_by=table.partition_by,
        location=str(table.location),
    )


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


def _source(table: Table) -> str | None:
    source = table.source
    if isinstance(source, Kafka):
        return f"Kafka {source.pattern or ', '.join(source.topics)}"
    if isinstance(source, Files):
        return f"{source.format} files {source.path}"
    return f"stream {source.format}" if source else None
