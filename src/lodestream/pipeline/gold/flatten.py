"""Simpler, equal forms of a query: common table expressions inlined, plain subqueries merged into their reader."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from lodestream.pipeline.gold.functions import multiplies_rows
from lodestream.pipeline.gold.plan import NotProvableError

_PLAIN = {"kind", "expressions", "from_", "joins", "where", "hint", "operation_modifiers"}


def inline_ctes(tree: exp.Select) -> exp.Select:
    """Each mention of a common table expression becomes a subquery, so that only tables and subqueries remain."""
    with_ = tree.args.get("with_")
    if with_ is None:
        return tree
    if with_.args.get("recursive"):
        raise NotProvableError("it is recursive")
    definitions: dict[str, exp.Expr] = {}
    for cte in with_.expressions:
        definitions[cte.alias] = _expanded(cte.this, definitions)
    with_.pop()
    expanded: exp.Select = _expanded(tree, definitions)
    return expanded


def _expanded(tree: Any, definitions: dict[str, exp.Expr]) -> Any:
    for table in list(tree.find_all(exp.Table)):
        if not table.db and table.name in definitions:
            alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
            table.replace(exp.Subquery(this=definitions[table.name].copy(), alias=alias))
    return tree


def flatten(select: exp.Select) -> exp.Select:
    """Merge `FROM (SELECT expressions FROM ... WHERE ...)` into the outer query, as often as it occurs."""
    while (inner := _mergeable(select)) is not None:
        _merge(select, inner)
    return select


def _mergeable(select: exp.Select) -> exp.Subquery | None:
    source = select.args["from_"].this if select.args.get("from_") else None
    joins = select.args.get("joins") or []
    if not isinstance(source, exp.Subquery) or not isinstance(source.this, exp.Select):
        return None
    inner = source.this
    if any(value for name, value in inner.args.items() if name not in _PLAIN) or inner.args.get("from_") is None:
        return None
    # An outer join that can drop or null-extend the left side would see the inner WHERE at another moment.
    if any(join.side in ("RIGHT", "FULL") for join in joins):
        return None
    if inner.find(exp.Window) or any(multiplies_rows(item) for item in inner.expressions):
        return None
    taken = {join.this.alias_or_name for join in joins}
    aliases = {inner.args["from_"].this.alias_or_name} | {
        join.this.alias_or_name for join in inner.args.get("joins") or []
    }
    return None if taken & aliases else source


def _merge(select: exp.Select, source: exp.Subquery) -> None:
    inner = source.this
    values = {item.alias_or_name: item.unalias() for item in inner.expressions}
    for column in list(select.find_all(exp.Column)):
        if column.table == source.alias and not _inside(column, source):
            column.replace(_wrapped(values[column.name]))
    select.set("from_", inner.args["from_"])
    select.set("joins", [*(inner.args.get("joins") or []), *(select.args.get("joins") or [])])
    if inner.args.get("where"):
        select.where(inner.args["where"].this, copy=False)


def _inside(node: exp.Expr, ancestor: exp.Expr) -> bool:
    parent = node.parent
    while parent is not None and parent is not ancestor:
        parent = parent.parent
    return parent is ancestor


def _wrapped(value: exp.Expr) -> exp.Expr:
    plain = isinstance(value, (exp.Column, exp.Func, exp.Literal, exp.Paren, exp.Cast))
    return value.copy() if plain else exp.Paren(this=value.copy())
