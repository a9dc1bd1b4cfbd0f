# ruff: noqa: S608 - SQL is what this module makes, from the user's own text
"""Delta: the change itself is pushed through the query and added to what is stored."""

from __future__ import annotations

from dataclasses import replace

from lodestream.pipeline.gold.affected import Affected, lookup_changes, narrowed, prove_affected, restricted
from lodestream.pipeline.gold.groups import (
    Groups,
    both_sql,
    delta_sql,
    fold_sql,
    present_sql,
    prove_groups,
    store_sql,
    stored_keys,
    unpack_sql,
)
from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.plan import FOLDED, GOLD, GoldPlan, NotProvableError
from lodestream.pipeline.gold.query import Query
from lodestream.pipeline.gold.rows import prove_rows, rows_both_sql, rows_delta_sql, rows_fold_sql
from lodestream.pipeline.gold.weighted import reread


def delta_plan(query: Query) -> GoldPlan:
    return _groups_plan(query) if query.group is not None else _rows_plan(query)


def _groups_plan(query: Query) -> GoldPlan:
    groups = prove_groups(query)
    stream = groups.stream.name
    exposed = tuple(groups.exposed.values())
    plan = GoldPlan(
        strategy="delta",
        shape="groups",
        reason=f"every column is a sum over the rows of {stream}, so a change is added to its groups",
        cheaper=None,
        inputs=query.statement.inputs,
        columns=query.columns,
        keys=exposed if len(exposed) == len(groups.keys) else (),
        full_sql=_from_scratch(groups),
        stream=stream,
        state_home="table" if groups.having is not None else "column",
        state_columns=groups.hidden,
        delta_sql=delta_sql(groups),
        both_sql=both_sql(groups),
        fold_sql=fold_sql(groups),
        present_sql=present_sql(groups),
        store_sql=store_sql(groups),
        unpack_sql=unpack_sql(groups),
        stored_keys=stored_keys(groups),
        notes=(*query.notes, *dict.fromkeys(groups.measures.notes)),
    )
    if groups.having is not None:
        return _with_lookups(plan, query, None, None)
    found = _affected(query)
    return _with_lookups(plan, query, found, _recomputed_groups(groups, found) if found else None)


def _rows_plan(query: Query) -> GoldPlan:
    rows = prove_rows(query)
    stream = rows.stream.name
    found = _affected(query)
    columns = ", ".join(quoted(name) for name in query.columns)
    plan = GoldPlan(
        strategy="delta",
        shape="rows",
        reason=f"every row comes from one row of {stream}, so a change passes through by itself",
        cheaper=None,
        inputs=query.statement.inputs,
        columns=query.columns,
        keys=tuple(found.wanted) if found else (),
        full_sql=query.statement.full_sql,
        stream=stream,
        delta_sql=rows_delta_sql(rows),
        both_sql=rows_both_sql(rows),
        fold_sql=rows_fold_sql(query.columns),
        present_sql=f"SELECT {columns} FROM {FOLDED}",
        store_sql=f"SELECT {columns} FROM {FOLDED}",
        unpack_sql=f"SELECT {columns} FROM {GOLD}",
        stored_keys=tuple((name, quoted(name)) for name in (found.wanted if found else query.columns)),
        notes=query.notes,
    )
    return _with_lookups(plan, query, found, _recomputed_rows(query, found) if found else None)


def _with_lookups(plan: GoldPlan, query: Query, found: Affected | None, recompute: str | None) -> GoldPlan:
    """What happens when a lookup changes: the rows that were joined to it are recomputed, or all of them."""
    found = found or Affected({}, {})
    return replace(
        plan,
        affected_keys=tuple(found.wanted),
        affected_sql={name: sql for name, sql in found.touched.items() if sql is not None},
        recompute_sql=recompute,
        on_lookup_change=lookup_changes(query.statement, found),
    )


def _affected(query: Query) -> Affected | None:
    try:
        return prove_affected(query)
    except NotProvableError:
        return None


def _from_scratch(groups: Groups) -> str:
    return store_sql(groups, f"({delta_sql(groups, feed=False)}) AS {FOLDED}")


def _recomputed_rows(query: Query, found: Affected) -> str:
    return restricted(reread(query, narrowed(query, found.wanted).scans), found.wanted)


def _recomputed_groups(groups: Groups, found: Affected) -> str:
    scans = narrowed(groups.query, found.wanted).scans
    rows = delta_sql(groups, feed=False, scans=scans)
    return restricted(store_sql(groups, f"({rows}) AS {FOLDED}"), found.wanted)
