"""Which tables a parsed query mentions."""

from __future__ import annotations

from sqlglot import exp


def base_tables(tree: exp.Expr) -> list[exp.Table]:
    """Every mention of a table that is not a common table expression of this query."""
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    mentioned = (table for table in tree.find_all(exp.Table) if not table.find_ancestor(exp.Hint))
    return [table for table in mentioned if table.db or table.name.lower() not in ctes]


def table_name(table: exp.Table) -> str:
    """`tier.name`; a function that gives a table is named by its call."""
    return f"{table.db}.{table.name}" if table.db else str(table.name) or table.this.sql("spark")
