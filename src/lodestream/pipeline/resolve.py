"""From the name that a function or query uses to the table it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lodestream.config import nearest
from lodestream.errors import DeclarationError
from lodestream.names import siblings_of
from lodestream.pipeline.location import Location, declaration_error
from lodestream.pipeline.table import JOINT, TIERS, Table


def resolve_input(
    reader: Table, written: str, place: Location, declared: Mapping[str, Table]
) -> str | DeclarationError:
    """The full name of the table that `written` means for `reader`, or what is wrong with it."""
    full = _qualified(written)
    if full is not None:
        return full if full in declared else _missing(reader, written, place, declared)
    same = [table.name for table in declared.values() if table.short == written]
    # A table may read its namesake of another tier: gold.trips reads trips, which is silver.trips.
    others = [name for name in same if name != reader.name]
    if len(others) > 1:
        return _ambiguous(reader, written, place, others)
    found = others or same
    return found[0] if found else _missing(reader, written, place, declared)


def spelling(reader: Table, full: str) -> str:
    """How this reader would write a full name: `silver__trips` as a parameter, `silver.trips` in SQL."""
    return full.replace(".", JOINT, 1) if reader.kind == "function" else full


def _qualified(written: str) -> str | None:
    tier, joint, rest = written.partition("." if "." in written else JOINT)
    if "." in written or (joint and tier in TIERS):
        return f"{tier}.{rest}"
    return None


def _missing(reader: Table, written: str, place: Location, declared: Mapping[str, Table]) -> DeclarationError:
    others = sorted(set(declared) - {reader.name})
    return declaration_error(
        place,
        f'{reader.name} reads "{written}", which is not declared',
        why=_sibling(written, declared) or f"declared: {', '.join(others) or 'nothing else'}",
        fix=_meant(reader, written, declared),
    )


def _meant(reader: Table, written: str, declared: Mapping[str, Table]) -> str:
    others = [table for table in declared.values() if table.name != reader.name]
    if "." in written or JOINT in written:
        close = nearest(written, [spelling(reader, table.name) for table in others])
    else:
        close = nearest(written, [table.short for table in others])
    if close:
        return f"did you mean {close}?"
    if reader.kind == "function":
        return "declare the table, or give the parameter a default if it is no table"
    return "declare the table, or write the query over a declared one"


def _sibling(written: str, declared: Iterable[str]) -> str | None:
    if not any(written in siblings_of(table) for table in declared):
        return None
    table, _, sibling = written.partition(".")[2].partition(JOINT)
    return f"{sibling} of {table} is kept by Lodestream and cannot be an input"


def _ambiguous(reader: Table, written: str, place: Location, names: list[str]) -> DeclarationError:
    return declaration_error(
        place,
        f'{reader.name} reads "{written}", which may be {" or ".join(names)}',
        why="several tiers have a table of that name",
        fix=f"write {' or '.join(spelling(reader, name) for name in names)}",
    )
