"""Which clauses of a query the proofs have read. Any other one could change its rows unseen, so nothing is proven."""

from __future__ import annotations

from sqlglot import exp

from lodestream.pipeline.gold.plan import NotProvableError

_ORDERING = frozenset(["order", "sort", "distribute", "cluster", "limit", "offset"])
_READ: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(["expressions", "from_", "joins", "laterals", "where", "group", "having", "distinct"])
    | {"with_", "windows", "hint", "qualify"}
    | _ORDERING,
    exp.Union: frozenset(["this", "expression", "distinct", "with_"]) | _ORDERING,
    exp.Table: frozenset(["this", "db", "alias"]),
    exp.Subquery: frozenset(["this", "alias", "with_"]),
    exp.Join: frozenset(["this", "side", "kind", "on", "using"]),
    exp.With: frozenset(["expressions"]),
    exp.Distinct: frozenset(["expressions"]),
}
_CALLED = {"pivots": "PIVOT", "recursive": "WITH RECURSIVE", "method": "NATURAL JOIN"}
_CHEAPER = {
    "pivots": "write a column for each value: sum(CASE WHEN kind = 'a' THEN amount END) AS a",
    "method": "name the columns: JOIN ... USING (...)",
}


def refuse_unread(tree: exp.Query) -> None:
    for node in tree.walk():
        for clause in sorted(_clauses(node) - _READ[type(node)]) if type(node) in _READ else ():
            called = _CALLED.get(clause, clause.strip("_").upper())
            raise NotProvableError(f"{called} is not followed from change to change", _CHEAPER.get(clause))
        if isinstance(node, exp.QueryTransform):
            raise NotProvableError("TRANSFORM hands its rows to another program", "compute it in Silver")


def _clauses(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value}
