"""What a declaration asks of a table that a table of its kind cannot keep: refused before anything runs."""

from __future__ import annotations

from lodestream.contracts.violations import hidden
from lodestream.errors import DeclarationError
from lodestream.names import RESERVED, reserved
from lodestream.pipeline import Graph, Table
from lodestream.pipeline.location import Location, declaration_error
from lodestream.pipeline.partitioning import unbounded
from lodestream.pipeline.sql import read_query, result_names
from lodestream.planning.keyed import changes_by_key, declared_keys, leaders_of
from lodestream.planning.project import contract_of


def unfit(graph: Graph, table: Table) -> DeclarationError | None:
    """Why the table cannot be as declared, and where that would work; None when it can."""
    checks = (_unique(graph, table), _corrected(graph, table), _bounded(graph, table), _masked(graph, table))
    return next((found for found in checks if found is not None), None) or _named_like_ours(table)


def _unique(graph: Graph, table: Table) -> DeclarationError | None:
    contract = contract_of(table)
    columns = contract.unique_besides(declared_keys(table)) if contract and table.tier == "silver" else ()
    leaders = leaders_of(graph, table) if columns and not table.is_reference else []
    if not columns or not (table.history or leaders):
        return None
    why = "it keeps every version of a row, and a value may pass from one key to another"
    fix = "take unique from its contract, and state it in that of a table without history"
    if leaders:
        why = f"a row that is refused here would be missing, while {leaders[0]} still has it"
        fix = f"state it in the contract of {leaders[0]}, where the rows arrive"
    return declaration_error(table.location, f"{table.name} cannot keep {', '.join(columns)} unique", why=why, fix=fix)


def _corrected(graph: Graph, table: Table) -> DeclarationError | None:
    """Only a table that follows a keyed one can: that one has every row as it is now, to look up again."""
    if not table.corrected_by or leaders_of(graph, table):
        return None
    what = f"{table.name} cannot be corrected by {', '.join(table.corrected_by)}"
    followed = graph.streams(table.name)[0]
    if changes_by_key(table):
        why = f"its rows are made from the events in {followed}, which are not read again"
        fix = f"look it up in a second Silver table that follows {table.name}, and say corrected_by there"
    else:
        why = "it only grows: a row that is stored is never changed"
        fix = f"give {followed} keys= and sequence_by=, so that it has a change feed which this table can follow"
        if graph[followed].tier == "bronze":
            fix = f"give {table.name} keys= and sequence_by=, and look it up in a second table that follows it"
    return declaration_error(table.location, what, why=why, fix=fix)


def _masked(graph: Graph, table: Table) -> DeclarationError | None:
    """Gold finds stored rows again by their values: hidden ones it would not find, and never correct."""
    contract = contract_of(table) if table.tier == "gold" else None
    columns = [field.name for field in contract.fields if hidden(field)] if contract else []
    if not columns:
        return None
    return declaration_error(
        table.location,
        f"{table.name} cannot mask {', '.join(columns)}",
        why="a Gold table is kept equal to its query, and a change finds the stored rows by their values",
        fix=f"mask in the contract of {' or '.join(graph.inputs(table.name))}, where the values come in,"
        f" and take lode.masking from {contract.title if contract else 'this contract'}",
    )


def _named_like_ours(table: Table) -> DeclarationError | None:
    if table.tier != "gold" or table.sql is None:
        return None
    start = Location(str(table.sql_path), 1) if table.sql_path else table.location
    tree = read_query(table.sql, start, inline=table.sql_path is None)
    for name, line in result_names(tree) if tree is not None else ():
        if reserved(name):
            location = Location(start.file, line) if table.sql_path and line else start
            what = f"{table.name} cannot have a column {name}"
            return declaration_error(location, what, why=RESERVED, fix=f"give it another name: AS {name.strip('_')}")
    return None


def _bounded(graph: Graph, table: Table) -> DeclarationError | None:
    """`dedupe_within` is for tables that keep the first row of a key, and of columns that they have."""
    if not table.dedupe_within:
        return None
    contract, leaders = contract_of(table), leaders_of(graph, table)
    what = f"{table.name} cannot look for duplicates within {', '.join(table.dedupe_within)}"
    if leaders:
        why = f"it follows {leaders[0]}, whose keys come once"
        return declaration_error(table.location, what, why=why, fix="remove dedupe_within")
    if not declared_keys(table):
        why = "it has no key, and without one no row comes twice"
        return declaration_error(table.location, what, why=why, fix='add keys="id", or a primary key to the contract')
    wrong = unbounded(table.dedupe_within, {field.name: field.type for field in contract}) if contract else None
    return declaration_error(table.location, what, why=wrong[0], fix=wrong[1]) if wrong else None
