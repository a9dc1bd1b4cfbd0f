"""Which output columns tell the rows apart so well that a change of one input row touches only its own values."""

from __future__ import annotations

from sqlglot import exp

from lodestream.pipeline.gold.functions import has_aggregate, session_window
from lodestream.pipeline.gold.plan import NotProvableError
from lodestream.pipeline.gold.query import group_of

_REFUSED = ("limit", "offset", "sample", "pivots", "match", "connect", "kind")


def local_columns(select: exp.Select) -> dict[str, exp.Expr]:
    """Output columns k such that the rows with k = v depend only on the input rows with the same value.

    That holds for functions of the group keys, and below window functions for functions of what they all
    partition by. Sessions do not qualify: a new row can merge two of them.
    """
    for clause in _REFUSED:
        if select.args.get(clause):
            raise NotProvableError(f"{clause.upper()} depends on every row")
    items = {str(item.alias_or_name): item.unalias() for item in select.expressions}
    leaves = _leaves(select)
    return {n: e for n, e in items.items() if _steady(e) and all(_built_from(e, known) for known in leaves)}


def _leaves(select: exp.Select) -> list[tuple[exp.Expr, ...]]:
    """Each tuple is a set of expressions that a local column must be built from."""
    group = group_of(select)
    partitions = [tuple(window.args.get("partition_by") or ()) for window in _windows(select)]
    return partitions if group is None else [group, *partitions]


def _windows(select: exp.Select) -> list[exp.Window]:
    places = [*select.expressions, select.args.get("qualify")]
    return [window for place in places if place is not None for window in place.find_all(exp.Window)]


def _steady(expression: exp.Expr) -> bool:
    plain = not (has_aggregate(expression) or session_window(expression))
    return plain and expression.find(exp.Column) is not None and expression.find(exp.Query, exp.Window) is None


def _built_from(expression: exp.Expr, leaves: tuple[exp.Expr, ...]) -> bool:
    """True when every column in the expression sits inside one of the leaves."""
    if expression in leaves:
        return True
    if isinstance(expression, exp.Column):
        return False
    return all(_built_from(child, leaves) for child in expression.iter_expressions())
