"""`lode plan`: what would run, how each table is kept, and what is wrong with the declarations. No JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lodestream.engine.keyed import keyed, silver_way
from lodestream.engine.project import Project, contract_of
from lodestream.errors import DeclarationError
from lodestream.pipeline import Files, Finding, Graph, Kafka, Table, lint, parse_partition
from lodestream.pipeline.gold.choose import choose
from lodestream.pipeline.gold.plan import InputInfo


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

    @property
    def blocked(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)


def make_plan(project: Project) -> Plan:
    tables = tuple(_planned(project, table) for table in project.graph)
    return Plan(project.pipeline.name, tables, tuple(lint(project.graph)))


def _planned(project: Project, table: Table) -> PlannedTable:
    contract = contract_of(table)
    strategy, reason, cheaper = _strategy(project.graph, table)
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


def _strategy(graph: Graph, table: Table) -> tuple[str, str, str | None]:
    if table.tier == "bronze":
        return "append", "events are captured as they come", None
    if table.kind == "reference":
        return "reload", "replaced in one step when its file changes", None
    if table.tier == "silver":
        return silver_way(graph, table)
    if table.sql is None:
        return "full", "recomputed as a whole, because a function does not show which rows a change touches", None
    return gold_strategy(graph, table)


def gold_strategy(graph: Graph, table: Table) -> tuple[str, str, str | None]:
    lookups = graph.lookups(table.name)
    infos = [_info(graph, name, name in lookups) for name in graph.inputs(table.name)]
    try:
        plan = choose(table.sql or "", infos, table.strategy)
    except DeclarationError as error:
        return "refused", error.why or error.what, error.fix
    return plan.strategy, plan.reason, plan.cheaper


def append_only(graph: Graph, name: str) -> bool:
    """Whether a table only ever grows, so that its appended rows say everything."""
    table = graph[name]
    return table.tier in ("bronze", "silver") and table.kind != "reference" and not keyed(graph, name)


def contract_keys(table: Table) -> tuple[str, ...]:
    contract = contract_of(table)
    return contract.keys if contract else ()


def _info(graph: Graph, name: str, lookup: bool) -> InputInfo:
    table = graph[name]
    contract = contract_of(table)
    columns: Mapping[str, str | None] = {field.name: field.type for field in contract} if contract else {}
    partitions = tuple(one.column for one in map(parse_partition, table.partition_by))
    return InputInfo(name, columns, table.keys or contract_keys(table), partitions, lookup=lookup)


def _source(table: Table) -> str | None:
    source = table.source
    if isinstance(source, Kafka):
        return f"Kafka {source.pattern or ', '.join(source.topics)}"
    if isinstance(source, Files):
        return f"{source.format} files {source.path}"
    return f"stream {source.format}" if source else None
