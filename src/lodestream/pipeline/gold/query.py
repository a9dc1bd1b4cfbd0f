"""A Gold query as the proofs read it: its scopes, its output columns, and what no proof can follow refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from lodestream.errors import DeclarationError
from lodestream.names import WEIGHT
from lodestream.pipeline.gold.clauses import refuse_gaps, refuse_unread
from lodestream.pipeline.gold.functions import changing, renames_columns, unknown_function
from lodestream.pipeline.gold.parsing import Parsed, call, nodes, span
from lodestream.pipeline.gold.plan import KEYS, InputInfo, NotProvableError
from lodestream.pipeline.gold.reading import Reader
from lodestream.pipeline.gold.scopes import Item, Scope, Source
from lodestream.pipeline.gold.spark_functions import GENERATORS
from lodestream.pipeline.gold.statement import Statement
from lodestream.pipeline.gold.types import SqlType, parse_type

_QUOTED = (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER)


@dataclass(frozen=True, slots=True)
class Query:
    """`top` is the outermost SELECT, or the reader of the branches of a UNION."""

    parsed: Parsed
    tree: exp.Query
    top: Scope
    statement: Statement
    notes: tuple[str, ...]

    @property
    def outputs(self) -> tuple[Item, ...]:
        return self.top.items

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.top.items)

    @property
    def group(self) -> tuple[object, ...] | None:
        return self.top.group

    def info(self, source: Source) -> InputInfo | None:
        return next((info for name, info in self.statement.infos.items() if name.lower() == source.table), None)


def read_query(statement: Statement) -> Query:
    """The scopes of the query, or NotProvableError when the query as a whole allows no incremental way."""
    parsed, tree = statement.parsed, statement.tree
    if parsed is None or tree is None:
        raise NotProvableError(f"only Spark can read it ({statement.unread})")
    _named_columns(tree)
    refuse_unread(tree)
    refuse_gaps(parsed, tree)
    _refuse_strangers(parsed)
    _refuse_collations(parsed)
    _refuse_chains(parsed)
    unknown = [name for name, info in statement.infos.items() if not info.columns]
    if unknown:
        raise NotProvableError(
            f"the columns of {', '.join(unknown)} are not known yet",
            "give the table a contract, run it once, or ask lode plan --deep",
        )
    _refuse_our_names(statement)
    notes = _order_notes(tree)
    top = Reader(parsed, statement.infos).read(tree)
    _refuse_twins(top.items)
    _refuse_unused(statement, top)
    return Query(parsed, tree, top, statement, notes)


def column_type(infos: Sequence[InputInfo], source: Source, name: str) -> SqlType | None:
    for info in infos:
        if info.name.lower() == source.table:
            return parse_type({column.lower(): kind for column, kind in info.columns.items()}.get(name))
    return None


# Of Spark's own grammar, in no registry of functions, and what says the same.
_BY_UNITS = {
    "timestampadd": "add an interval: at + INTERVAL '1' DAY",
    "timestampdiff": "take the difference of seconds: unix_seconds(b) - unix_seconds(a)",
}


_COMPARES = (
    exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between,
    exp.Like, exp.ILike, exp.RegexpLike, exp.SimilarTo, exp.Glob, exp.Escape,
)  # fmt: skip


def _refuse_strangers(parsed: Parsed) -> None:
    moving = changing(parsed)
    if moving:
        raise NotProvableError(
            f"{moving} gives another answer at another time",
            "use a time of the row itself, derive chance from a key (xxhash64), or leave it to the reader of the table",
        )
    name = unknown_function(parsed)
    if name in _BY_UNITS:
        raise NotProvableError(f"{name} is written with a unit, which nothing here reads", _BY_UNITS[name])
    if name and renames_columns(parsed, name):
        raise NotProvableError(f"{name}(...) gives columns other names", "name them where they are made: SELECT x AS k")
    if name:
        raise NotProvableError(
            f"function {name} is not one of Spark's own, so nothing is known of it",
            "if it works row by row, compute it in Silver",
        )


def _refuse_collations(parsed: Parsed) -> None:
    """`collation('a')` names one, and so asks nothing of anybody; a column by that name is quoted."""
    if any(token.text.lower() == "collate" and token.token_type not in _QUOTED for token in parsed.tokens):
        raise NotProvableError(
            "COLLATE calls different texts equal, and a stored text has no collation to be found by",
            "make the texts equal themselves: lower(name)",
        )


def _refuse_chains(parsed: Parsed) -> None:
    """`a = b >= c` is `(a = b) >= c` to Spark and `a = (b >= c)` to the parser: nothing is taken from either."""
    for node in nodes(parsed.trees[0]):
        parts = [part for name, part in node.args.items() if name != "expressions" and isinstance(part, exp.Expr)]
        if isinstance(node, _COMPARES) and any(_chained(node, _bare(part, parsed)) for part in parts):
            raise NotProvableError(
                "one comparison is compared with another, without parentheses", "write which comes first: (a = b) >= c"
            )


def _chained(node: exp.Expr, part: exp.Expr) -> bool:
    if isinstance(node, exp.Escape):  # belongs to its LIKE
        return False
    return isinstance(part, (*_COMPARES, exp.Not))


def _bare(part: exp.Expr, parsed: Parsed) -> exp.Expr:
    """Without the parentheses that the parser put there itself."""
    while isinstance(part, exp.Paren) and parsed.text[span(part)[0]] != "(":
        part = part.this
    return part


def _refuse_our_names(statement: Statement) -> None:
    for name, info in statement.infos.items():
        ours = [column for column in info.columns if column.lower() == WEIGHT or column.lower().startswith(KEYS)]
        if ours:
            raise NotProvableError(f"{name} has a column called {ours[0]}, a name of Lodestream's own")


def _refuse_unused(statement: Statement, top: Scope) -> None:
    read = {source.table for scope in top.every() for source in scope.sources}
    read |= {name for scope in top.every() for name in scope.read_elsewhere}
    for name in statement.inputs:
        if name.lower() not in read:
            raise NotProvableError(f"{name} is only read by a WITH that nothing uses", "drop that part of WITH")


def _order_notes(tree: exp.Query) -> tuple[str, ...]:
    if tree.args.get("limit") or tree.args.get("offset"):
        raise NotProvableError(
            "LIMIT depends on every row", "drop LIMIT here and put it into the query that reads the table"
        )
    ordered = any(tree.args.get(clause) for clause in ("order", "sort", "distribute", "cluster"))
    return ("ORDER BY is ignored: a table has no order, its readers do",) if ordered else ()


def _named_columns(tree: exp.Query) -> None:
    for item in tree.selects:
        if call(item) in GENERATORS:
            raise NotProvableError("a function gives rows and names their columns", "write it as LATERAL VIEW")
        if not (item.is_star or isinstance(item, (exp.Alias, exp.Aliases, exp.Column, exp.Dot, exp.QueryTransform))):
            text = item.sql("spark")
            raise DeclarationError(
                f"a column of a Gold query has no name: {text}",
                why="Spark would call the table's column by the text of the expression",
                fix=f"{text} AS a_good_name",
            )


def _refuse_twins(items: Sequence[Item]) -> None:
    seen = set[str]()
    for item in items:
        if item.name.lower() in seen:
            raise DeclarationError(
                f"a Gold query has two columns named {item.name}",
                why="a table's columns are told apart by their names, in either case",
                fix=f"give one of them another name: {item.piece.text} AS another_name",
            )
        seen.add(item.name.lower())
