"""Small rewrites of sqlglot trees that every strategy needs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from sqlglot import exp

from lodestream.pipeline.gold.plan import KEYS, feed_view, now_view
from lodestream.pipeline.gold.statement import base_tables, table_name

T = TypeVar("T", bound=exp.Expr)


def quoted(name: str) -> str:
    return str(exp.to_identifier(name, quoted=True).sql("spark"))


def replaced(node: exp.Expr, known: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """A copy of the tree in which the topmost nodes that `known` answers for are replaced."""
    answer = known(node)
    if answer is not None:
        return answer
    result = node.copy()
    for key, value in node.args.items():
        if isinstance(value, exp.Expr):
            result.set(key, replaced(value, known))
        elif isinstance(value, list):
            result.set(key, [replaced(v, known) if isinstance(v, exp.Expr) else v for v in value])
    return result


def select_sql(items: list[str], source: exp.Select) -> str:
    """These items from the FROM, WHERE and the rest of a SELECT."""
    rest = source.copy()
    rest.set("expressions", [])
    rest.comments = None
    return f"SELECT {', '.join(items)} {rest.sql('spark').removeprefix('SELECT').strip()}"


def read_views(tree: T, *, feeds: Collection[str] = ()) -> T:
    """A copy that reads the feed for the topmost sources with these aliases, the `now` view for all other tables."""
    result = tree.copy()
    top = {id(table) for table in _top_tables(result)}
    for table in base_tables(result):
        if table.name == KEYS:
            continue
        alias = table.alias_or_name
        feed = id(table) in top and alias in feeds
        name = feed_view(table_name(table)) if feed else now_view(table_name(table))
        table.replace(exp.alias_(exp.to_table(name), alias, table=True))
    return result


def _top_tables(tree: exp.Expr) -> list[exp.Expr]:
    if not isinstance(tree, exp.Select):
        return []
    return [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or [])]
