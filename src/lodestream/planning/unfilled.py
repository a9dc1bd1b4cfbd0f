"""Columns that a contract names and nothing fills: what `lode plan` can tell of queries."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from lodestream.contracts.conform import unfilled
from lodestream.pipeline import Finding, Table
from lodestream.pipeline.sql import parse_query, query_outputs
from lodestream.planning.project import Project, contract_of


def unfilled_findings(project: Project) -> Iterator[Finding]:
    for table in project.graph:
        names = _missing(table)
        if names:
            listed = ", ".join(names)
            yield Finding(
                "warning",
                table.name,
                f"{table.name}: its query does not select {listed}",
                "the contract names them as optional, so every row has null there and none is refused",
                f"select {listed}, or take them out of the contract",
                table.location,
            )


def _missing(table: Table) -> tuple[str, ...]:
    contract = contract_of(table) if table.tier == "silver" and table.sql is not None else None
    if contract is None or table.sql is None:
        return ()
    query = parse_query(table.sql, table.location, inline=table.sql_path is None)
    if any(_hides(select) for select in query.find_all(exp.Select)):
        return ()  # a star: its columns are known when it runs
    return unfilled(contract, [name for name, _ in query_outputs(query)])


def _hides(select: exp.Select) -> bool:
    return any(one.is_star for one in select.selects)
