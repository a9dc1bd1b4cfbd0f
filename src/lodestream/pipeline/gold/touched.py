# ruff: noqa: S608 - SQL is what this module makes, from trees that were parsed
"""The keys that a changed input touches: a query over its feed, for every place where the input is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from lodestream.pipeline.gold.joins import Joins, aliases, conjuncts, read_joins
from lodestream.pipeline.gold.kinds import Kinds
from lodestream.pipeline.gold.locality import local_columns
from lodestream.pipeline.gold.plan import NotProvableError, feed_view, now_view
from lodestream.pipeline.gold.query import Source
from lodestream.pipeline.gold.rewriting import quoted, read_views, replaced
from lodestream.pipeline.gold.statement import base_tables, table_name

Wanted = Mapping[str, exp.Expr]


@dataclass(frozen=True, slots=True)
class Touch:
    """One mention of an input. `sql` gives the touched keys; None when they cannot be told, and `reason` why.

    `direct` means that the changed rows carry the keys themselves, so no join is needed to find them.
    """

    table: str
    sql: str | None
    direct: bool = False
    reason: str = ""


def touches(select: exp.Select, wanted: Wanted, kinds: Kinds) -> Iterator[Touch]:
    """Every mention of an input below this SELECT; `wanted` are the keys as expressions over its sources."""
    joins = read_joins(select, kinds)
    for source in joins.sources:
        own = {name: joins.over(source.alias, expression) for name, expression in wanted.items()}
        known = {name: expression for name, expression in own.items() if expression is not None}
        if isinstance(source.node, exp.Subquery):
            yield from _below(source, known if len(known) == len(own) else None, kinds)
        elif len(known) == len(own):
            yield Touch(_name(source.node), _direct(select, source, known, joins), direct=True)
        else:
            yield _through(select, source, wanted, joins)
    yield from _elsewhere(select)


def inside(source: Source, expression: exp.Expr) -> Iterator[tuple[exp.Select, exp.Expr | None]]:
    """The same expression one level down, per branch of the subquery; None where the level is not local in it."""
    first: tuple[str, ...] | None = None
    for branch in _branches(source.node.this):
        names = tuple(str(item.alias_or_name) for item in branch.expressions)
        first = first or names
        local = local_columns(branch)
        by_name = {outer: local.get(inner) for outer, inner in zip(first, names, strict=False)}
        yield branch, _substituted(expression, by_name)


def _branches(node: exp.Expr) -> Iterator[exp.Select]:
    if isinstance(node, exp.Union) and not any(node.args.get(c) for c in ("limit", "offset")):
        yield from _branches(node.left.unnest())
        yield from _branches(node.right.unnest())
    elif isinstance(node, exp.Select):
        yield node
    else:
        raise NotProvableError(f"a subquery with {node.key.upper()} depends on every row")


def _substituted(expression: exp.Expr, columns: Mapping[str, exp.Expr | None]) -> exp.Expr | None:
    used = [columns.get(str(column.name)) for column in expression.find_all(exp.Column)]
    if any(value is None for value in used):
        return None

    def known(node: exp.Expr) -> exp.Expr | None:
        value = columns.get(str(node.name)) if isinstance(node, exp.Column) else None
        return value.copy() if value is not None else None

    return replaced(expression, known)


def _below(source: Source, own: Wanted | None, kinds: Kinds) -> Iterator[Touch]:
    """Touches inside a subquery: it must carry every key itself."""
    refused = [
        Touch(_name(table), None, reason=f"subquery {source.alias} does not carry the keys of the table")
        for table in base_tables(source.node)
    ]
    if own is None:
        yield from refused
        return
    levels: dict[int, tuple[exp.Select, dict[str, exp.Expr]]] = {}
    for name, expression in own.items():
        for branch, inner in inside(source, expression):
            if inner is None:
                yield from refused
                return
            levels.setdefault(id(branch), (branch, {}))[1][name] = inner
    if not _same_kinds(list(levels.values()), kinds):
        yield from refused
        return
    for branch, wanted in levels.values():
        yield from touches(branch, wanted, kinds)


def _same_kinds(levels: list[tuple[exp.Select, dict[str, exp.Expr]]], kinds: Kinds) -> bool:
    """UNION converts its branches to one type; a key must be the same value before and after that."""
    if len(levels) < 2:
        return True
    found = [{name: kinds.kind(branch, e) for name, e in wanted.items()} for branch, wanted in levels]
    return all(kind is not None for kind in found[0].values()) and all(kind == found[0] for kind in found)


def _direct(select: exp.Select, source: Source, own: Wanted, joins: Joins) -> str:
    filters = _filters(select, {source.alias}, joins)
    return f"SELECT DISTINCT {_items(own)} FROM {feed_view(_name(source.node))} AS {source.alias}{filters}"


def _through(select: exp.Select, source: Source, wanted: Wanted, joins: Joins) -> Touch:
    """Follow the changed rows through the join to the keys on the other side."""
    name = _name(source.node)
    if joins.full:
        return Touch(name, None, reason="a FULL JOIN gives keys that one side cannot tell")
    if source.alias in joins.optional and any(source.alias in aliases(e) for e in wanted.values()):
        reason = f"a key comes from {name}, which is joined with LEFT JOIN: a match that comes or goes moves rows"
        return Touch(name, None, reason=reason)
    needed = _needed(select, source, wanted, joins)
    clauses = [_source_sql(select, other, source.alias) for other in joins.sources if other.alias in needed]
    laterals = "".join(f" {lateral.sql('spark').strip()}" for lateral in select.args.get("laterals") or [])
    filters = _filters(select, needed - joins.optional, joins)
    return Touch(name, f"SELECT DISTINCT {_items(wanted)} FROM {' '.join(clauses)}{laterals}{filters}")


def _needed(select: exp.Select, source: Source, wanted: Wanted, joins: Joins) -> set[str]:
    """The changed source, those the keys come from, and those that the conditions between them mention."""
    every = [other.alias for other in joins.sources]
    if select.args.get("laterals"):
        return set(every)
    needed = {every[0], source.alias} | {alias for e in wanted.values() for alias in aliases(e)}
    while True:
        on = [o.join.args.get("on") for o in joins.sources if o.join is not None and o.alias in needed]
        grown = needed | {alias for condition in on if condition is not None for alias in aliases(condition)}
        if grown == needed:
            return needed & set(every)
        needed = grown


def _source_sql(select: exp.Select, source: Source, changed: str) -> str:
    if source.alias == changed:
        body = f"{feed_view(_name(source.node))} AS {source.alias}"
    elif isinstance(source.node, exp.Table):
        body = _before_and_after(select, source)
    else:
        body = str(read_views(source.node).sql("spark"))
    if source.join is None:
        return body
    condition = source.join.args.get("on")
    if condition is None:
        return f"CROSS JOIN {body}"
    left = source.join.side == "LEFT" and source.alias != changed
    return f"{'LEFT' if left else 'INNER'} JOIN {body} ON {condition.sql('spark')}"


def _before_and_after(select: exp.Select, source: Source) -> str:
    """The other side as it was and as it is: when both sides lose a row at once, neither is found otherwise."""
    used = {c.this.sql("spark"): None for c in select.find_all(exp.Column) if c.table == source.alias}
    columns = ", ".join(used) or "1 AS one"
    name = _name(source.node)
    union = f"SELECT {columns} FROM {now_view(name)} UNION ALL SELECT {columns} FROM {feed_view(name)}"
    return f"({union}) AS {source.alias}"


def _filters(select: exp.Select, allowed: set[str], joins: Joins) -> str:
    """The conditions that speak of these sources alone; leaving the others out only finds more keys."""
    where = select.args.get("where")
    kept = [
        part.sql("spark")
        for part in conjuncts(where.this if where else None)
        if aliases(part) and aliases(part) <= allowed - joins.optional and not joins.full and not part.find(exp.Query)
    ]
    return f" WHERE {' AND '.join(f'({part})' for part in kept)}" if kept else ""


def _elsewhere(select: exp.Select) -> Iterator[Touch]:
    """Tables read in expressions: IN (SELECT ...), EXISTS, scalar subqueries."""
    below = {id(t) for place in _from_places(select) for t in base_tables(place)}
    for table in base_tables(select):
        if id(table) not in below:
            yield Touch(_name(table), None, reason=f"{_name(table)} is read in a subquery of an expression")


def _from_places(select: exp.Select) -> list[exp.Expr]:
    return [select.args["from_"].this, *(join.this for join in select.args.get("joins") or [])]


def _items(wanted: Wanted) -> str:
    return ", ".join(f"{expression.sql('spark')} AS {quoted(name)}" for name, expression in wanted.items())


def _name(node: exp.Expr) -> str:
    return table_name(node).lower() if isinstance(node, exp.Table) else str(node.alias_or_name)
