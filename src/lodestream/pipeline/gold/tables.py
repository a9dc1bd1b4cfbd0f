"""Which tables a parsed query mentions."""

from __future__ import annotations

from sqlglot import exp

from lodestream.pipeline.gold.parsing import nodes


def base_tables(tree: exp.Expr) -> list[exp.Table]:
    """Every mention of a table that is no common table expression of this query and no function such as range()."""
    found = [one for one in nodes(tree) if isinstance(one, (exp.CTE, exp.Table))]
    ctes = {one.alias.lower() for one in found if isinstance(one, exp.CTE)}
    mentioned = (one for one in found if isinstance(one, exp.Table) and not one.find_ancestor(exp.Hint))
    named = [table for table in mentioned if isinstance(table.this, (exp.Identifier, exp.Dot))]
    return [table for table in named if table.db or table.name.lower() not in ctes]


def table_name(table: exp.Table) -> str:
    """`tier.name`; a function that gives a table is named by its call."""
    return f"{table.db}.{table.name}" if table.db else str(table.name) or table.this.sql("spark")
