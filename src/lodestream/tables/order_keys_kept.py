"""Whether a keyed table keeps the order keys of its rows in the columns that would be written now."""

from __future__ import annotations

from collections.abc import Sequence

from lodestream.errors import NotOurTable
from lodestream.names import ORDER, feed_of, hidden_column, marks_of, ours


def kept_otherwise(table: str, held: Sequence[str], wanted: Sequence[str]) -> NotOurTable | None:
    """Why rows cannot be added to a table with the columns `held`; `wanted` are those of an order key, as of now."""
    if kept_by_earlier_version(held):
        return by_earlier_version(table)
    kept = [one for one in held if one.startswith(f"{ORDER}_")]
    if not kept or set(kept) == set(wanted):
        return None
    return NotOurTable(
        f"{table} orders the changes of its keys otherwise than declared",
        why=f"its rows carry {', '.join(kept)}, and what is declared now gives {', '.join(wanted)}: "
        "a change that comes late could not be held against the rows",
        fix=f"declare sequence_by as it was; or rename or drop {table}, {feed_of(table)} and {marks_of(table)}, "
        "and all three are made again from their input",
    )


def kept_by_earlier_version(held: Sequence[str]) -> bool:
    """Whether the columns of a keyed table, its feed or its marks are those of an earlier version."""
    return any(ours(one) and not hidden_column(one) for one in held)


def by_earlier_version(table: str) -> NotOurTable:
    return NotOurTable(
        f"{table} was written by an earlier version of Lodestream",
        why="it shows the order of its changes to its readers; this version keeps it where only Lodestream reads it",
        fix=f"rename or drop {table}, {feed_of(table)} and {marks_of(table)}: the next run makes all three again",
    )
