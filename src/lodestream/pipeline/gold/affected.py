# ruff: noqa: S608 - SQL is what this module makes, from trees that were parsed
"""Affected keys: find the keys a change touches, old and new side, and recompute just those."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from lodestream.pipeline.gold.functions import multiplies_rows
from lodestream.pipeline.gold.joins import read_joins
from lodestream.pipeline.gold.kinds import Kinds
from lodestream.pipeline.gold.locality import local_columns
from lodestream.pipeline.gold.plan import KEYS, GoldPlan, NotProvableError, OnChange
from lodestream.pipeline.gold.query import Query, Source
from lodestream.pipeline.gold.rewriting import quoted, read_views
from lodestream.pipeline.gold.statement import Statement
from lodestream.pipeline.gold.touched import Touch, Wanted, inside, touches

_ALIAS = "_lode_k"


@dataclass(frozen=True, slots=True)
class Affected:
    """The keys chosen, and per input the query for the keys it touches (None: its change means a full refresh)."""

    wanted: Wanted
    touched: Mapping[str, str | None]


def affected_plan(query: Query) -> GoldPlan:
    found = prove_affected(query)
    prune: dict[str, set[tuple[str, str]]] = defaultdict(set)
    recompute = recompute_sql(query, found.wanted, prune)
    changes = lookup_changes(query.statement, found)
    names = " and ".join(quoted(name).strip("`") for name in found.wanted)
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
        recompute_sql=recompute,
        prune={name: tuple(sorted(pairs)) for name, pairs in prune.items() if pairs},
        on_lookup_change=changes,
        notes=query.notes,
    )


def prove_affected(query: Query) -> Affected:
    """Choose the keys: those that changed rows carry themselves, else those a join leads to."""
    kinds = Kinds(query.statement.infos)
    local = local_columns(query.select)
    spelled = {output.name: output.name for output in query.outputs} | {o.name.lower(): o.name for o in query.outputs}
    candidates = {spelled[name]: expression for name, expression in local.items()}
    if not candidates:
        raise _nowhere_local(query)
    streams = {name.lower() for name in query.statement.streams}
    refusal = NotProvableError("no key can be found from every input")
    for chosen in _choices(query, candidates, kinds, streams):
        found = list(touches(query.select, chosen, kinds))
        lost = [touch for touch in found if touch.sql is None and touch.table in streams]
        if not lost:
            return Affected(chosen, _by_input(query.statement, found))
        refusal = NotProvableError(lost[0].reason, "carry the key in both tables, or declare one with lookup=[...]")
    raise refusal


def _nowhere_local(query: Query) -> NotProvableError:
    if any(not window.args.get("partition_by") for window in query.select.find_all(exp.Window)):
        return NotProvableError(
            "a window function runs over all rows, so one change can move every later row",
            "partition the window by a column of the SELECT list, or read from a table with fewer rows",
        )
    if query.group == ():
        return NotProvableError("its one row is made of all rows")
    return NotProvableError("no column tells which rows a change touches", "add the group keys to the SELECT list")


def _choices(query: Query, candidates: Wanted, kinds: Kinds, streams: set[str]) -> list[Wanted]:
    alone = {name: list(touches(query.select, {name: e}, kinds)) for name, e in candidates.items()}
    direct = {n: candidates[n] for n, found in alone.items() if all(t.direct for t in found if t.table in streams)}
    possible = {n: candidates[n] for n, found in alone.items() if not _lost(found, streams)}
    choices = [_identifying(query, direct), direct] if query.group is None else [direct]
    singles = [{name: expression} for name, expression in possible.items()]
    return [choice for choice in [*choices, possible, *singles, candidates] if choice]


def _lost(found: list[Touch], streams: set[str]) -> bool:
    return any(touch.sql is None and touch.table in streams for touch in found)


def _identifying(query: Query, direct: Wanted) -> Wanted:
    """For a row per row: the key columns of an input, and what it is partitioned by, find a row fastest."""
    chosen: dict[str, exp.Expr] = {}
    for source in query.sources():
        info = query.info(source)
        columns = {
            str(e.name): name for name, e in direct.items() if isinstance(e, exp.Column) and e.table == source.alias
        }
        keys = [key.lower() for key in info.keys] if info else []
        if info and keys and all(key in columns for key in keys):
            wanted = dict.fromkeys([*keys, *(part.lower() for part in info.partition_by if part.lower() in columns)])
            chosen |= {columns[key]: direct[columns[key]] for key in wanted}
            break
    return chosen


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


def recompute_sql(query: Query, wanted: Wanted, prune: dict[str, set[tuple[str, str]]]) -> str:
    """The user's query for the keys in `_lode_keys` only; the scans are narrowed where they carry a key."""
    select = narrowed(query, wanted, prune)
    for item, output in zip(select.expressions, query.outputs, strict=True):
        item.set("alias", exp.to_identifier(output.name, quoted=True))
    return restricted(str(read_views(select).sql("spark")), wanted)


def restricted(sql: str, wanted: Wanted) -> str:
    """The semi join that makes the result exact, whatever the scans let through."""
    same = " AND ".join(f"_lode_q.{quoted(n)} <=> {_ALIAS}.{quoted(n)}" for n in wanted)
    return f"SELECT _lode_q.* FROM ({sql}) AS _lode_q LEFT SEMI JOIN {KEYS} AS {_ALIAS} ON {same}"


def narrowed(query: Query, wanted: Wanted, prune: dict[str, set[tuple[str, str]]]) -> exp.Select:
    select = query.select.copy()
    _narrow(select, dict(wanted), Kinds(query.statement.infos), prune)
    mentions: dict[str, int] = defaultdict(int)
    for touch in touches(query.select, wanted, Kinds(query.statement.infos)):
        mentions[touch.table] += 1
    names = {name.lower(): name for name in query.statement.inputs}
    for table in list(prune):
        pairs = prune.pop(table)
        # A view that is read twice must not be filtered for one of its readers.
        if mentions[table] == 1:
            prune[names[table]] = pairs
    return select


def _narrow(select: exp.Select, wanted: Wanted, kinds: Kinds, prune: dict[str, set[tuple[str, str]]]) -> None:
    joins = read_joins(select, kinds)
    for source in joins.sources:
        own = {name: joins.over(source.alias, e) for name, e in wanted.items()}
        known = {n: e for n, e in own.items() if e is not None and not multiplies_rows(e)}
        if not known:
            continue
        if isinstance(source.node, exp.Subquery):
            _narrow_below(source, known, kinds, prune)
        elif isinstance(source.node, exp.Table):
            pairs = {(str(e.name), n) for n, e in known.items() if isinstance(e, exp.Column)}
            prune[source.table or ""] |= pairs
            source.node.replace(_scan(source, known))


def _narrow_below(source: Source, known: Wanted, kinds: Kinds, prune: dict[str, set[tuple[str, str]]]) -> None:
    levels: dict[int, tuple[exp.Select, dict[str, exp.Expr]]] = {}
    for name, expression in known.items():
        for branch, inner in inside(source, expression):
            if inner is not None:
                levels.setdefault(id(branch), (branch, {}))[1][name] = inner
    for branch, wanted in levels.values():
        _narrow(branch, wanted, kinds, prune)


def _scan(source: Source, known: Wanted) -> exp.Expr:
    """A table read through the keys. `<=>` because a null key is a key like any other."""
    keys = exp.alias_(exp.to_table(KEYS), _ALIAS, table=True)
    conditions = [
        exp.NullSafeEQ(this=e.copy(), expression=exp.column(exp.to_identifier(n, quoted=True), table=_ALIAS))
        for n, e in known.items()
    ]
    star = exp.Column(this=exp.Star(), table=exp.to_identifier(source.alias))
    scan = exp.select(star).from_(source.node.copy())
    scan.append("joins", exp.Join(this=keys, side="LEFT", kind="SEMI", on=exp.and_(*conditions)))
    return exp.Subquery(this=scan, alias=exp.TableAlias(this=exp.to_identifier(source.alias)))
