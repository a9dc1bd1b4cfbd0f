"""What a Silver query does to rows together: DISTINCT, LIMIT, UNION. It sees those of one batch, never the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from lodestream.pipeline.gold.lookup import places
from lodestream.pipeline.gold.parsing import UnreadableError, parse
from lodestream.pipeline.gold.tables import table_name
from lodestream.pipeline.query_problem import line_of

_Ctes = Mapping[str, exp.Expr]


def fold_of(text: str, followed: str) -> tuple[str, int] | None:
    """The first clause that takes rows of this table together, on their way to the result, and its line.

    What stands over other tables alone, as in a join with a lookup, is none.
    """
    try:
        trees = parse(text).trees
    except UnreadableError:
        return None
    found = _folds(trees[0], followed.lower(), {}) if len(trees) == 1 else None
    return found[0] if found else None


def _folds(node: exp.Expr, followed: str, ctes: _Ctes) -> list[tuple[str, int]] | None:
    """The clauses that the rows of the followed table pass; None when they do not come by."""
    with_ = node.args.get("with_")
    ctes = {**ctes, **{cte.alias.lower(): cte.this for cte in (with_.expressions if with_ is not None else ())}}
    below = [found for one in _below(node) if (found := _source(one, followed, ctes)) is not None]
    if not below:
        return None
    return [*_own(node), *(fold for found in below for fold in found)]


def _below(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.SetOperation):
        yield from (node.left, node.right)
    elif isinstance(node, exp.Select):
        yield from (one for one, join in places(node) if join is None or join.kind not in ("SEMI", "ANTI"))
    elif isinstance(node, exp.Subquery):
        yield node.this


def _source(node: exp.Expr, followed: str, ctes: _Ctes) -> list[tuple[str, int]] | None:
    if not isinstance(node, exp.Table):
        return _folds(node, followed, ctes)
    name = table_name(node).lower()
    if name in ctes and not node.db:
        return _folds(ctes[name], followed, {one: query for one, query in ctes.items() if one != name})
    return [] if name in (followed, followed.partition(".")[2]) else None


def _own(node: exp.Expr) -> Iterator[tuple[str, int]]:
    line = line_of(node) or 1
    if isinstance(node, exp.SetOperation) and (node.args.get("distinct") or not isinstance(node, exp.Union)):
        yield node.key.upper(), line
    if isinstance(node, exp.Select) and node.args.get("distinct"):
        yield "SELECT DISTINCT", line
    for clause in ("limit", "offset"):
        if node.args.get(clause):
            yield clause.upper(), line_of(node.args[clause]) or line
