"""Which tables are updated and deleted from by key, and by which columns their rows are told apart."""

from __future__ import annotations

from lodestream.errors import DeclarationError
from lodestream.names import VALID_FROM
from lodestream.pipeline import Graph, Table
from lodestream.pipeline.location import declaration_error
from lodestream.planning.project import contract_of


def keyed(graph: Graph, name: str) -> bool:
    """Whether a table has a change feed of its own: it says so, or it follows one that does."""
    table = graph[name]
    return (
        table.tier == "silver" and not table.is_reference and (changes_by_key(table) or bool(leaders_of(graph, table)))
    )


def changes_by_key(table: Table) -> bool:
    return bool(table.sequence_by or table.delete_when or table.history)


def leader(graph: Graph, table: Table) -> str | None:
    """The keyed table that this one follows; None when it orders the changes itself."""
    leaders = leaders_of(graph, table)
    if not leaders:
        return None
    problem = _wrong(graph, table, leaders)
    if problem is not None:
        raise problem
    return leaders[0]


def row_keys(graph: Graph, name: str) -> tuple[str, ...]:
    """The columns that tell the rows of a table apart; none when it has no key."""
    table = graph[name]
    leaders = leaders_of(graph, table) if table.tier == "silver" and not table.is_reference else []
    if leaders:
        return row_keys(graph, leaders[0])
    keys = declared_keys(table)
    return (*keys, VALID_FROM) if keys and table.history and not table.is_reference else keys


def declared_keys(table: Table) -> tuple[str, ...]:
    contract = contract_of(table)
    return table.keys or (contract.keys if contract else ())


def silver_way(graph: Graph, table: Table) -> tuple[str, str, str | None]:
    """How a Silver table is kept, and why."""
    if not keyed(graph, table.name):
        keys = declared_keys(table)
        far = f" within {', '.join(table.dedupe_within)}" if table.dedupe_within else ", in the whole table"
        why = f"first position of each key wins{far}" if keys else "each input row is transformed once"
        return ("deduplicate" if keys else "append"), why, None
    try:
        followed = leader(graph, table)
    except DeclarationError as error:
        return "refused", error.why or error.what, error.fix
    if followed:
        corrected = f", corrected by {', '.join(table.corrected_by)}" if table.corrected_by else ""
        return "upsert", f"follows every change of {followed}{corrected}", None
    order = f"the last change by {', '.join(table.sequence_by) or 'arrival'}"
    return ("history", f"{order} ends the version before it", None) if table.history else (
        "upsert", f"{order} of each key wins", None
    )  # fmt: skip


def leaders_of(graph: Graph, table: Table) -> list[str]:
    return [one for one in graph.streams(table.name) if keyed(graph, one)]


def _wrong(graph: Graph, table: Table, leaders: list[str]) -> DeclarationError | None:
    if len(graph.streams(table.name)) > 1:
        return declaration_error(
            table.location,
            f"{table.name} follows {' and '.join(graph.streams(table.name))}",
            why=f"{leaders[0]} changes by key: a function sees only its changed rows, and cannot join them to others",
            fix="follow one and name the others in lookup=, or join them in a Gold table",
        )
    if changes_by_key(table):
        return declaration_error(
            table.location,
            f"{table.name} follows {leaders[0]}, which has ordered its changes already",
            why="sequence_by, delete_when and history belong where the changes arrive, before they are netted",
            fix=f"remove them here, or read what {leaders[0]} is made from",
        )
    wanted = row_keys(graph, leaders[0])
    if table.keys and set(table.keys) != set(wanted):
        return declaration_error(
            table.location,
            f"{table.name} has the keys {', '.join(table.keys)}, and {leaders[0]} has {', '.join(wanted)}",
            why="a row that changes there must be found here",
            fix=f"remove keys=: the table takes those of {leaders[0]}",
        )
    return None
