# ruff: noqa: S608 - the SQL is the plan's
"""The stored groups plus the change, all of them: one statement, no shuffle, for tables that are small."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from lodestream.flows.batch import Span
from lodestream.flows.context import SMALL
from lodestream.pipeline.gold.plan import BOTH, DELTA, FOLDED, GOLD, STORED, GoldPlan, feed_view, now_view
from lodestream.sources.table import TableInput

if TYPE_CHECKING:
    from lodestream.flows.gold.table import GoldTable


def folded(gold: GoldTable, plan: GoldPlan, span: Span) -> DataFrame:
    groups = span.rows + gold.stored_rows
    steps = (
        (GOLD, f"SELECT {_narrow(groups)} * FROM {gold.lake.identifier(gold.name)} VERSION AS OF {gold.head.id}"),
        (STORED, plan.unpack_sql),
        (DELTA, _delta(plan, gold.tables, span)),
        (BOTH, f"SELECT {_narrow(groups)} * FROM ({plan.both_sql})"),
        (FOLDED, plan.fold_sql),
    )
    return gold.lake.spark.sql(nested(steps, plan.store_sql))


def nested(steps: Iterable[tuple[str, str | None]], last: str | None) -> str:
    """Each step as a subquery of the steps that read it: Spark analyses a WITH clause several times over."""
    known: dict[str, str] = {}
    for view, sql in steps:
        known[view] = _filled(sql or "", known)
    return _filled(last or "", known)


def _delta(plan: GoldPlan, tables: tuple[TableInput, ...], span: Span) -> str:
    """The delta query, with the change inside it where that can be said in SQL; every other input is a view."""
    delta = plan.delta_sql or ""
    for table in tables:
        since, to = span.since[table.name], span.to[table.name]
        if table.name != plan.stream:
            table.now(to).createOrReplaceTempView(now_view(table.name))
            continue
        view = feed_view(table.name)
        said = table.changes_sql(since, to, _narrow(span.rows))
        if said is not None and f"{view} AS " in delta:
            delta = delta.replace(f"{view} AS ", f"({said}) AS ", 1)
        else:
            rows = table.changes(since, to)
            (rows.coalesce(1) if span.rows <= SMALL else rows).createOrReplaceTempView(view)
    return delta


def _narrow(rows: int) -> str:
    """Few rows in one partition: grouping them then needs no shuffle."""
    return "/*+ COALESCE(1) */" if rows <= SMALL else ""


def _filled(sql: str, known: Mapping[str, str]) -> str:
    for view, definition in known.items():
        sql = sql.replace(f"FROM {view}", f"FROM ({definition}) AS {view}")
    return sql
