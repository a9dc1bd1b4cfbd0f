# ruff: noqa: S608 - SQL is what this module makes, from the user's own text
"""Affected keys: find the keys a change touches, old and new side, and recompute just those."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from lodestream.pipeline.gold.edits import table_span
from lodestream.pipeline.gold.functions import multiplies_rows, session_window
from lodestream.pipeline.gold.joins import read_joins
from lodestream.pipeline.gold.kinds import Kinds
from lodestream.pipeline.gold.locality import local_columns
from lodestream.pipeline.gold.pieces import Piece, quoted
from lodestream.pipeline.gold.plan import KEYS, GoldPlan, NotProvableError, OnChange, now_view
from lodestream.pipeline.gold.query import Query
from lodestream.pipeline.gold.scopes import Scope, Source
from lodestream.pipeline.gold.statement import Statement
from lodestream.pipeline.gold.tables import base_tables, table_name
from lodestream.pipeline.gold.touched import Touch, Wanted, inside, touches
from lodestream.pipeline.gold.weighted import reread

_ALIAS = "_lode_k"
Pruning = dict[str, set[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Affected:
    """The keys chosen, and per input the query for the keys it touches (None: its change means a full refresh)."""

    wanted: Wanted
    touched: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Narrowing:
    """`scans` replaces mentions of tables by reads of the touched keys only; `prune` are plain columns among them."""

    scans: Mapping[int, str]
    prune: Mapping[str, tuple[tuple[str, str], ...]]


def affected_plan(query: Query) -> GoldPlan:
    found = prove_affected(query)
    narrowing = narrowed(query, found.wanted)
    names = " and ".join(found.wanted)
    return GoldPlan(
        strategy="affected",
        reason=f"a change touches only the rows with its own {names}, which are recomputed",
        cheaper=None,
        inputs=query.statement.inputs,
        columns=query.columns,
        keys=tuple(found.wanted),
        full_sql=query.statement.full_sql,
        affected_keys=tuple(found.wanted),
        affected_sql={name: sql for name, sql in found.touched.items() if sql is not None},
        recompute_sql=restricted(reread(query, narrowing.scans), found.wanted),
        prune=narrowing.prune,
        on_lookup_change=lookup_changes(query.statement, found),
        notes=query.notes,
    )


def prove_affected(query: Query) -> Affected:
    """Choose the keys: those that changed rows carry themselves, else those a join leads to."""
    kinds = Kinds(query.statement.infos)
    local = local_columns(query.top, kinds)
    spelled = {item.name.lower(): item.name for item in query.outputs}
    candidates = {spelled[name]: piece for name, piece in local.items()}
    if not candidates:
        raise _nowhere_local(query)
    streams = {name.lower() for name in query.statement.streams}
    refusal = NotProvableError("no key can be found from every input")
    for chosen in _choices(query, candidates, kinds, streams):
        found = list(touches(query.top, chosen, kinds))
        lost = [touch for touch in found if touch.sql is None and touch.table in streams]
        if not lost:
            return Affected(chosen, _by_input(query.statement, found))
        refusal = NotProvableError(lost[0].reason, "carry the key in both tables, or declare one with lookup=[...]")
    raise refusal


def _nowhere_local(query: Query) -> NotProvableError:
    if any(not window.args.get("partition_by") for window in query.top.windows):
        return NotProvableError(
            "a window function runs over all rows, so one change can move every later row",
            "partition the window by a column of the SELECT list, or read from a table with fewer rows",
        )
    if any(session_window(key.tree) for key in query.top.group or ()):
        return NotProvableError(
            "a session can merge with or split from its neighbours",
            "group by a key beside the session (a user, a device): then only touched keys are recomputed",
        )
    if query.top.group == ():
        return NotProvableError("its one row is made of all rows")
    return NotProvableError("no column tells which rows a change touches", "add the group keys to the SELECT list")


def _choices(query: Query, candidates: Wanted, kinds: Kinds, streams: set[str]) -> list[Wanted]:
    alone = {name: list(touches(query.top, {name: piece}, kinds)) for name, piece in candidates.items()}
    direct = {n: candidates[n] for n, found in alone.items() if all(t.direct for t in found if t.table in streams)}
    possible = {n: candidates[n] for n, found in alone.items() if not _lost(found, streams)}
    choices = [_identifying(query, direct), direct] if query.top.group is None else [direct]
    singles = [{name: piece} for name, piece in possible.items()]
    return [choice for choice in [*choices, possible, *singles, candidates] if choice]


def _lost(found: list[Touch], streams: set[str]) -> bool:
    return any(touch.sql is None and touch.table in streams for touch in found)


def _identifying(query: Query, direct: Wanted) -> Wanted:
    """For a row per row: the key columns of an input, and what it is partitioned by, find a row fastest."""
    for source in query.top.sources:
        info = query.info(source)
        columns = {
            str(piece.tree.name): name
            for name, piece in direct.items()
            if piece.plain and piece.aliases == {source.alias}
        }
        keys = [key.lower() for key in info.keys] if info else []
        if info and keys and all(key in columns for key in keys):
            wanted = dict.fromkeys([*keys, *(part.lower() for part in info.partition_by if part.lower() in columns)])
            return {columns[key]: direct[columns[key]] for key in wanted}
    return {}


def _by_input(statement: Statement, found: list[Touch]) -> dict[str, str | None]:
    result: dict[str, str | None] = {}
    for name in statement.inputs:
        sqls = [touch.sql for touch in found if touch.table == name.lower()]
        known = [sql for sql in dict.fromkeys(sqls) if sql is not None]
        result[name] = " UNION ".join(known) if known and None not in sqls else None
    return result


def lookup_changes(statement: Statement, found: Affected) -> dict[str, OnChange]:
    lookups = [name for name in statement.inputs if name not in statement.streams]
    return {name: "affected" if found.touched.get(name) else "full" for name in lookups}


def restricted(sql: str, wanted: Wanted) -> str:
    """The semi join that makes the result exact, whatever the scans let through."""
    same = " AND ".join(f"_lode_q.{quoted(n)} <=> {_ALIAS}.{quoted(n)}" for n in wanted)
    return f"SELECT _lode_q.* FROM ({sql}) AS _lode_q LEFT SEMI JOIN {KEYS} AS {_ALIAS} ON {same}"


def narrowed(query: Query, wanted: Wanted) -> Narrowing:
    """Scans that read only rows of the touched keys, where a table carries them."""
    kinds = Kinds(query.statement.infos)
    scans: dict[int, str] = {}
    prune: Pruning = defaultdict(set)
    _narrow(query.top, wanted, kinds, scans, prune)
    # Counted in the text itself: a subquery whose keys are lost tells of each table once, however often it reads it.
    mentions = Counter(table_name(table).lower() for table in base_tables(query.tree))
    names = {name.lower(): name for name in query.statement.inputs}
    # A view that is read twice must not be filtered for one of its readers.
    kept = {names[table]: tuple(sorted(pairs)) for table, pairs in prune.items() if pairs and mentions[table] == 1}
    return Narrowing(scans, kept)


def _narrow(scope: Scope, wanted: Wanted, kinds: Kinds, scans: dict[int, str], prune: Pruning) -> None:
    joins = read_joins(scope, kinds)
    for source in joins.sources:
        own = {name: joins.over(source.alias, piece) for name, piece in wanted.items()}
        known = {n: piece for n, piece in own.items() if piece is not None and not multiplies_rows(piece.tree)}
        if not known or source.shared:
            continue
        if source.table is None:
            _narrow_below(source, known, kinds, scans, prune)
        else:
            prune[source.table] |= {(str(piece.tree.name), n) for n, piece in known.items() if piece.plain}
            scans[table_span(source.node)[0]] = _scan(source, known)


def _narrow_below(source: Source, known: Wanted, kinds: Kinds, scans: dict[int, str], prune: Pruning) -> None:
    levels: dict[int, tuple[Scope, dict[str, Piece]]] = {}
    for name, piece in known.items():
        for branch, inner in inside(source, piece, kinds):
            if inner is not None:
                levels.setdefault(id(branch), (branch, {}))[1][name] = inner
    for branch, wanted in levels.values():
        _narrow(branch, wanted, kinds, scans, prune)


def _scan(source: Source, known: Wanted) -> str:
    """A table read through the keys. `<=>` because a null key is a key like any other."""
    alias = quoted(source.alias)
    same = " AND ".join(f"({piece.text}) <=> {_ALIAS}.{quoted(name)}" for name, piece in known.items())
    view = now_view(str(source.table))
    return f"(SELECT {alias}.* FROM {view} AS {alias} LEFT SEMI JOIN {KEYS} AS {_ALIAS} ON {same})"
