"""The borders of the tiers: what a pipeline may say and should not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from lodestream.pipeline.functions import function_aggregates
from lodestream.pipeline.graph import Graph
from lodestream.pipeline.location import Location
from lodestream.pipeline.sql import query_aggregates, read_query
from lodestream.pipeline.table import TIERS, Table

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to change, with the reason and the way."""

    severity: Severity
    table: str
    message: str
    why: str
    fix: str
    location: Location

    def __str__(self) -> str:
        head = f"{self.severity}: {self.location}: {self.message}"
        return f"{head}\n  why: {self.why}\n  fix: {self.fix}"


def lint(graph: Graph) -> list[Finding]:
    """What is wrong at the borders, errors first, then in the order of the graph."""
    found = [finding for table in graph for rule in RULES for finding in rule(graph, table)]
    return sorted(found, key=lambda finding: finding.severity)


def bronze_transforms(_graph: Graph, table: Table) -> Iterator[Finding]:
    if table.tier != "bronze":
        return
    options = {
        "decode": table.decode,
        "contract": table.contract,
        "filters": table.filters,
        "allow_no_rows": table.allow_no_rows,
        "expect": table.expectations,
        "keys": table.keys,
    }
    for option, value in options.items():
        if value:
            yield Finding(
                "error",
                table.name,
                f"{table.name} transforms: {option}=",
                "Bronze keeps what arrived, byte for byte, so that everything above can be made again from it",
                f"move {option}= to the Silver table that reads {table.short}",
                table.location,
            )


def gold_reads_bronze(graph: Graph, table: Table) -> Iterator[Finding]:
    for written, full, place in zip(table.inputs, graph.inputs(table.name), table.input_locations, strict=True):
        if table.tier == "gold" and graph[full].tier == "bronze":
            yield Finding(
                "error",
                table.name,
                f"{table.name} reads {full}",
                "Bronze is neither decoded nor deduplicated nor checked, so Gold would count what Silver refuses",
                f"read a Silver table that is made from {written}",
                place,
            )


def tier_reads_upward(graph: Graph, table: Table) -> Iterator[Finding]:
    for full, place in zip(graph.inputs(table.name), table.input_locations, strict=True):
        if TIERS.index(graph[full].tier) > TIERS.index(table.tier):
            yield Finding(
                "error",
                table.name,
                f"{table.name} reads {full}",
                "data flows from Bronze to Silver to Gold; a loop back mixes facts with what was derived from them",
                f"make {table.short} a Gold table, or read what {full} is made from",
                place,
            )


def silver_aggregates(_graph: Graph, table: Table) -> Iterator[Finding]:
    if table.tier != "silver":
        return
    why = "Silver holds one row per fact; sums belong in Gold, which corrects them when a fact changes"
    fix = f"keep the rows in {table.name} and aggregate in a Gold table that reads it"
    if table.sql is not None:
        start = Location(str(table.sql_path), 1) if table.sql_path else table.location
        tree = read_query(table.sql, start, inline=table.sql_path is None)
        for one in query_aggregates(tree)[:1] if tree is not None else ():
            place = Location(start.file, one.line) if table.sql_path and one.line else start
            yield Finding("error", table.name, f"{table.name} aggregates: {one.text}", why, fix, place)
    if table.function is not None:
        for one in function_aggregates(table.function)[:1]:
            place = Location(table.location.file, one.line or table.location.line)
            # Only a warning: reading source code cannot tell a DataFrame's groupBy from another one.
            yield Finding("warning", table.name, f"{table.name} aggregates: {one.text}", why, fix, place)


def keyed_without_contract(_graph: Graph, table: Table) -> Iterator[Finding]:
    if table.tier == "silver" and table.keys and table.contract is None and not table.is_reference:
        yield Finding(
            "warning",
            table.name,
            f"{table.name} has keys and no contract",
            "nothing checks that the keys are there and of one type, and its readers have nothing to rely on",
            'add contract="contracts/....yaml"',
            table.location,
        )


def keyed_without_order(_graph: Graph, table: Table) -> Iterator[Finding]:
    changes = table.delete_when or table.history
    if table.keys and changes and not table.sequence_by and not table.is_reference:
        yield Finding(
            "warning",
            table.name,
            f"{table.name} has no sequence_by",
            "changes that arrive out of order are applied in the order of arrival",
            "add sequence_by= with the column that orders the changes of a key",
            table.location,
        )


def without_owner(_graph: Graph, table: Table) -> Iterator[Finding]:
    if table.owner is None and table.contract is None and table.tier == "gold":
        yield Finding(
            "warning",
            table.name,
            f"{table.name} has no owner",
            "someone must answer when its numbers are asked about",
            'add owner="team"',
            table.location,
        )


RULES: tuple[Callable[[Graph, Table], Iterator[Finding]], ...] = (
    bronze_transforms,
    gold_reads_bronze,
    tier_reads_upward,
    silver_aggregates,
    keyed_without_contract,
    keyed_without_order,
    without_owner,
)
