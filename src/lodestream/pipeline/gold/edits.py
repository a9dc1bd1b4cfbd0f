"""Changes to the user's text by position: what is not named stays as it was written, character by character."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from lodestream.pipeline.gold.parsing import Parsed, Span, span
from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.plan import NotProvableError, now_view
from lodestream.pipeline.gold.scopes import unnamed
from lodestream.pipeline.gold.tables import base_tables, table_name

Edit = tuple[int, int, str]
_AFTER_WHERE = {
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.QUALIFY,
    TokenType.ORDER_BY,
    TokenType.SORT_BY,
    TokenType.DISTRIBUTE_BY,
    TokenType.CLUSTER_BY,
    TokenType.LIMIT,
    TokenType.OFFSET,
    TokenType.SEMICOLON,
}


def edited(text: str, edits: Iterable[Edit], *, start: int = 0, end: int | None = None) -> str:
    """The text between two places, with those edits that lie there."""
    end = len(text) if end is None else end
    result, cursor = [], start
    for first, last, new in sorted(edits):
        if first < cursor or last > end:
            continue
        result += [text[cursor:first], new]
        cursor = last
    return "".join([*result, text[cursor:end]])


def table_span(table: exp.Expr) -> Span:
    parts = [part.meta for part in table.parts] if isinstance(table, exp.Table) else []
    if not parts:
        raise NotProvableError("a table has no place in the text")
    return parts[0]["start"], parts[-1]["end"] + 1


def reading(tree: exp.Expr, instead: Mapping[int, str], *, naming: bool = True) -> list[Edit]:
    """Every table read through its `now` view, or through what `instead` says of the mention at this place.

    `naming` gives subqueries without a name the one that the pieces use.
    """
    edits = []
    tables = base_tables(tree)
    for table in tables:
        first, last = table_span(table)
        view = instead.get(first, now_view(table_name(table)))
        # A subquery or a view goes by the name that the rest of the query uses.
        alias = "" if table.alias else f" AS {quoted(table.name)}"
        edits.append((first, last, view + alias))
    for subquery in tree.find_all(exp.Subquery) if naming else ():
        if not subquery.alias and isinstance(subquery.parent, (exp.From, exp.Join)):
            end = span(subquery)[1]
            edits.append((end, end, f" AS {unnamed(subquery)}"))
    return edits + _short_names(tree, tables)


def _short_names(tree: exp.Expr, tables: Iterable[exp.Table]) -> list[Edit]:
    """`silver.trips.fare`, or with the catalog before it: a view is known by its short name only.

    `t.address.city` is a field, and stays.
    """
    long = [parts for column in tree.find_all(exp.Column) if len(parts := column.parts) > 2]
    if not long:
        return []
    names = {table_name(table).lower() for table in tables}
    aliases = {str(table.alias_or_name).lower() for table in tree.find_all(exp.Table, exp.Subquery)}
    edits: list[Edit] = []
    for parts in long:
        if str(parts[0].name).lower() in aliases:
            continue
        for first in (0, 1) if len(parts) > 3 else (0,):
            if ".".join(str(part.name) for part in parts[first : first + 2]).lower() in names:
                edits.append((parts[0].meta["start"], parts[first + 1].meta["start"], ""))
                break
    return edits


def select_list(parsed: Parsed, select: exp.Select) -> Span:
    """From the word SELECT to the end of the last item, DISTINCT and hints between them included."""
    first, last = span(select.expressions[0])[0], span(select.expressions[-1])[1]
    words = [t.start for t in parsed.tokens if t.token_type == TokenType.SELECT and t.start < first]
    if not words:
        raise NotProvableError("its SELECT cannot be found in the text")
    return words[-1], last


def body_end(parsed: Parsed, select: exp.Select) -> int:
    """Where FROM, joins and WHERE end and what follows them begins."""
    depth = 0
    conditions = _conditions(select)
    for token in _after(parsed.tokens, select_list(parsed, select)[1]):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if any(first <= token.start < last for first, last in conditions):
            continue  # a column may be called `offset`
        if depth < 0 or (depth == 0 and token.token_type in _AFTER_WHERE):
            return int(token.start)
    return len(parsed.plain)


def _conditions(select: exp.Select) -> list[Span]:
    where = select.args.get("where")
    on = [join.args["on"] for join in select.args.get("joins") or [] if join.args.get("on")]
    return [span(one) for one in (*on, *([where.this] if where else []))]


def _after(tokens: tuple[Token, ...], place: int) -> list[Token]:
    return [token for token in tokens if token.start >= place]
