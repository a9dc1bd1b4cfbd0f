"""Which clauses of a query the proofs have read. Any other one could change its rows unseen, so nothing is proven."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from lodestream.pipeline.gold.parsing import Parsed, nodes, span
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


# What may follow a SELECT list, a condition or a GROUP BY.
_FOLLOWING = {
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.QUALIFY,
    TokenType.WINDOW,
    TokenType.ORDER_BY,
    TokenType.SORT_BY,
    TokenType.DISTRIBUTE_BY,
    TokenType.CLUSTER_BY,
    TokenType.LIMIT,
    TokenType.OFFSET,
    TokenType.UNION,
    TokenType.EXCEPT,
    TokenType.INTERSECT,
    TokenType.R_PAREN,
    TokenType.SEMICOLON,
}
_JOINING = {
    TokenType.JOIN,
    TokenType.LEFT,
    TokenType.RIGHT,
    TokenType.FULL,
    TokenType.INNER,
    TokenType.CROSS,
    TokenType.SEMI,
    TokenType.ANTI,
    TokenType.COMMA,
    TokenType.LATERAL,
}


def refuse_gaps(parsed: Parsed, tree: exp.Query) -> None:
    """Every word between two expressions is one that separates them: the parser passed over nothing."""
    if any(token.token_type == TokenType.PIPE_GT for token in parsed.tokens):
        raise NotProvableError("|> is not followed from change to change", "write it as SELECT ... FROM ...")
    for select in tree.find_all(exp.Select):
        _refuse_gaps_between(parsed.tokens, select.expressions, _FOLLOWING)
        for item in select.expressions:
            if isinstance(item, exp.Alias):
                if not isinstance(item.args["alias"], exp.Identifier):
                    raise NotProvableError(f"what {parsed.plain[slice(*span(item))]!r} does is not known")
                _refuse_words(parsed.tokens, span(item.this)[1], span(item.args["alias"])[0], (TokenType.ALIAS,))
        for clause in ("where", "having"):
            if select.args.get(clause):
                _refuse_gaps_between(parsed.tokens, [select.args[clause].this], _FOLLOWING)
        if select.args.get("group"):
            _refuse_gaps_between(parsed.tokens, select.args["group"].expressions, _FOLLOWING)
        for join in select.args.get("joins") or []:
            if join.args.get("on"):
                _refuse_gaps_between(parsed.tokens, [join.args["on"]], _FOLLOWING | _JOINING)


def _refuse_gaps_between(tokens: Sequence[Token], nodes: Sequence[exp.Expr], following: set[TokenType]) -> None:
    for one, other in pairwise(nodes):
        _refuse_words(tokens, span(one)[1], span(other)[0], (TokenType.COMMA,), exactly=True)
    if nodes:
        after = next((token for token in tokens if token.start >= span(nodes[-1])[1]), None)
        if after is not None and after.token_type not in following:
            raise NotProvableError(f"what {after.text!r} does is not known")


def _refuse_words(
    tokens: Sequence[Token], start: int, end: int, allowed: Sequence[TokenType], *, exactly: bool = False
) -> None:
    found = [token for token in tokens if start <= token.start < end]
    strange = next((token for token in found if token.token_type not in allowed), None)
    if strange is not None or (exactly and len(found) != len(allowed)):
        raise NotProvableError(f"what {strange.text if strange else 'a piece of it'!r} does is not known")


def refuse_unread(tree: exp.Query) -> None:
    for node in nodes(tree):
        for clause in sorted(_clauses(node) - _READ[type(node)]) if type(node) in _READ else ():
            called = _CALLED.get(clause, clause.strip("_").upper())
            raise NotProvableError(f"{called} is not followed from change to change", _CHEAPER.get(clause))
        if isinstance(node, exp.QueryTransform):
            raise NotProvableError(
                "TRANSFORM hands its rows to another program",
                "use a Python function in Silver that gives a row per row",
            )


def _clauses(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value}
