# ruff: noqa: S608 - SQL is what this module makes, from the user's own text
"""The keys that a changed input touches: a query over its feed, for every place where the input is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from lodestream.pipeline.gold.joins import Joins, read_joins
from lodestream.pipeline.gold.kinds import Kinds
from lodestream.pipeline.gold.locality import is_local, local_columns, movable
from lodestream.pipeline.gold.pieces import Piece, quoted
from lodestream.pipeline.gold.plan import feed_view, now_view
from lodestream.pipeline.gold.scopes import Condition, Scope, Source

Wanted = Mapping[str, Piece]


@dataclass(frozen=True, slots=True)
class Touch:
    """One mention of an input. `sql` gives the touched keys; None when they cannot be told, and `reason` why.

    `direct` means that the changed rows carry the keys themselves, so no join is needed to find them.
    """

    table: str
    sql: str | None
    direct: bool = False
    reason: str = ""


def touches(scope: Scope, wanted: Wanted, kinds: Kinds) -> Iterator[Touch]:
    """Every mention of an input below this SELECT; `wanted` are the keys as expressions over its sources."""
    joins = read_joins(scope, kinds)
    for source in joins.sources:
        own = {name: joins.over(source.alias, piece) for name, piece in wanted.items()}
        known = {name: piece for name, piece in own.items() if piece is not None}
        if source.table is None:
            yield from _below(source, known if len(known) == len(own) else None, kinds)
        elif len(known) == len(own):
            yield Touch(source.table, _direct(scope, source, known, joins), direct=True)
        else:
            yield _through(scope, source, wanted, joins)
    for name in sorted(scope.read_elsewhere):
        yield Touch(name, None, reason=f"{name} is read in a subquery of an expression")


def inside(source: Source, piece: Piece, kinds: Kinds) -> Iterator[tuple[Scope, Piece | None]]:
    """The same expression one level down, per branch of the subquery; None where the level is not local in it."""
    united = len(source.branches) > 1
    for branch in source.branches:
        local = local_columns(branch, kinds)
        pairs = zip(source.columns, branch.columns, strict=True)
        inner = piece.over({(source.alias, outer): local.get(inner) for outer, inner in pairs})
        known = inner is not None and is_local(branch, inner, kinds, united=united)
        yield branch, inner if known else None


def _below(source: Source, own: Wanted | None, kinds: Kinds) -> Iterator[Touch]:
    """Touches inside a subquery: it must carry every key itself."""
    refused = [
        Touch(table, None, reason=f"subquery {source.alias} does not carry the keys of the table")
        for table in sorted(set(_tables(source)))
    ]
    if own is None:
        yield from refused
        return
    levels: dict[int, tuple[Scope, dict[str, Piece]]] = {}
    for name, piece in own.items():
        for branch, inner in inside(source, piece, kinds):
            if inner is None:
                yield from refused
                return
            levels.setdefault(id(branch), (branch, {}))[1][name] = inner
    if not _same_kinds(list(levels.values()), kinds):
        yield from refused
        return
    for branch, wanted in levels.values():
        yield from touches(branch, wanted, kinds)


def _tables(source: Source) -> Iterator[str]:
    if source.table is not None:
        yield source.table
    for branch in source.branches:
        yield from branch.read_elsewhere
        for below in branch.sources:
            yield from _tables(below)


def _same_kinds(levels: list[tuple[Scope, dict[str, Piece]]], kinds: Kinds) -> bool:
    """UNION converts its branches to one type; a key must be the same value before and after that."""
    if len(levels) < 2:
        return True
    found = [{name: kinds.united(branch, piece.tree) for name, piece in wanted.items()} for branch, wanted in levels]
    return all(kind is not None for kind in found[0].values()) and all(kind == found[0] for kind in found)


def _direct(scope: Scope, source: Source, own: Wanted, joins: Joins) -> str:
    filters = _filters(scope, {source.alias}, joins)
    return f"SELECT DISTINCT {_items(own)} FROM {feed_view(str(source.table))} AS {quoted(source.alias)}{filters}"


def _through(scope: Scope, source: Source, wanted: Wanted, joins: Joins) -> Touch:
    """Follow the changed rows through the join to the keys on the other side."""
    name = str(source.table)
    if joins.full:
        return Touch(name, None, reason="a FULL JOIN gives keys that one side cannot tell")
    if source.alias in joins.optional:
        if any(source.alias in piece.aliases for piece in wanted.values()):
            reason = f"a key comes from {name}, which is joined with LEFT JOIN: a match that comes or goes moves rows"
            return Touch(name, None, reason=reason)
        if any(source.alias in one.piece.aliases for later in _later(joins, source) for one in later.on):
            return Touch(name, None, reason=f"{name} may be missing and still steers a later join")
    needed = _needed(source, wanted, joins)
    others = [other for other in joins.sources if other.alias in needed]
    if scope.laterals or any(other.table is None for other in others):
        return Touch(name, None, reason=f"the keys of a change in {name} are only found through a subquery")
    if any(one.piece.tree.find(exp.Query) for other in others for one in other.on):
        return Touch(name, None, reason=f"the keys of a change in {name} are only found through a subquery")
    clauses = [_source_sql(other, source.alias) for other in others]
    filters = _filters(scope, needed - joins.optional, joins)
    return Touch(name, f"SELECT DISTINCT {_items(wanted)} FROM {' '.join(clauses)}{filters}")


def _later(joins: Joins, source: Source) -> tuple[Source, ...]:
    place = [other.alias for other in joins.sources].index(source.alias)
    return joins.sources[place + 1 :]


def _needed(source: Source, wanted: Wanted, joins: Joins) -> set[str]:
    """The changed source, those the keys come from, and those that the conditions between them mention."""
    every = [other.alias for other in joins.sources]
    needed = {every[0], source.alias} | {alias for piece in wanted.values() for alias in piece.aliases}
    while True:
        on = [one for other in joins.sources if other.alias in needed for one in other.on]
        grown = needed | {alias for condition in on for alias in condition.piece.aliases}
        if grown == needed:
            return needed & set(every)
        needed = grown


def _source_sql(source: Source, changed: str) -> str:
    if source.alias == changed:
        body = f"{feed_view(str(source.table))} AS {quoted(source.alias)}"
    else:
        body = _before_and_after(source)
    if source.join is None:
        return body
    if not source.on:
        return f"CROSS JOIN {body}"
    left = source.side == "LEFT" and source.alias != changed
    condition = " AND ".join(f"({one.piece.text})" for one in source.on)
    return f"{'LEFT' if left else 'INNER'} JOIN {body} ON {condition}"


def _before_and_after(source: Source) -> str:
    """The other side as it was and as it is: when both sides lose a row at once, neither is found otherwise."""
    columns = ", ".join(quoted(column) for column in source.columns)
    name = str(source.table)
    union = f"SELECT {columns} FROM {now_view(name)} UNION ALL SELECT {columns} FROM {feed_view(name)}"
    return f"({union}) AS {quoted(source.alias)}"


def _filters(scope: Scope, allowed: set[str], joins: Joins) -> str:
    """The conditions that speak of these sources alone; leaving the others out only finds more keys."""
    kept = [one.piece.text for one in scope.where if _tells(one, allowed - joins.optional) and not joins.full]
    return f" WHERE {' AND '.join(f'({text})' for text in kept)}" if kept else ""


def _tells(condition: Condition, allowed: set[str]) -> bool:
    return movable(condition.piece) and condition.piece.aliases <= allowed


def _items(wanted: Wanted) -> str:
    return ", ".join(f"({piece.text}) AS {quoted(name)}" for name, piece in wanted.items())
