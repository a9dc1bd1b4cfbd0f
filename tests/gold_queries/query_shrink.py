"""The smallest query and the fewest rows that still fail in the same way: leave out one part at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from query_check import Case, Outcome, Planner, check
from query_model import AliasRef, Col, Expr, Join, Key, Op, Query, Select, Sub, Table, Union
from query_tables import INFOS, NO_LOOKUP, History

from lodestream.pipeline.gold import analyse

_SIMPLE = {"int": "1", "bool": "true", "str": "'a'", "dec": "1.00"}
Checked = Callable[[Case], Outcome]


def shrunk(case: Case, outcome: Outcome, *, seconds: float = 20, planner: Planner = analyse) -> tuple[Case, Outcome]:
    """A case that fails like the given one, and what it says."""

    def checked(candidate: Case) -> Outcome:
        return check(candidate, planner)

    until = time.monotonic() + seconds
    read = {table for table in INFOS if table in case.sql}
    known = History(tuple({table: rows for table, rows in s.items() if table in read} for s in case.history.states))
    case = replace(case, pooled=None, history=known)
    found = checked(case)
    outcome = found if _alike(found, outcome) else outcome
    while True:
        before = (case.sql, case.history, case.force, case.large)
        for simpler in (_plainer, _smaller_queries, _smaller_histories):
            case, outcome = _greedy(case, outcome, simpler, checked, until)
        if (case.sql, case.history, case.force, case.large) == before or time.monotonic() > until:
            return case, outcome


def _greedy(
    case: Case, outcome: Outcome, simpler: Callable[[Case], Iterator[Case]], checked: Checked, until: float
) -> tuple[Case, Outcome]:
    again = True
    while again and time.monotonic() < until:
        again = False
        for candidate in simpler(case):
            if time.monotonic() > until:
                break
            found = checked(candidate)
            if found.fault and _alike(found, outcome):
                case, outcome, again = candidate, found, True
                break
    return case, outcome


def _alike(one: Outcome, other: Outcome) -> bool:
    if one.status != other.status:
        return False
    return one.status == "different" or one.detail[:24] == other.detail[:24]


def _plainer(case: Case) -> Iterator[Case]:
    if case.large:
        yield replace(case, large=False)
    if case.force:
        yield replace(case, force=None)
    if case.infos is INFOS:
        yield replace(case, infos=NO_LOOKUP)


def _smaller_histories(case: Case) -> Iterator[Case]:
    states = case.history.states
    for number in range(len(states)):
        if len(states) > 1:
            yield replace(case, history=History(states[:number] + states[number + 1 :]))
    for table in INFOS:
        if any(state.get(table) for state in states):
            yield replace(case, history=History(tuple({**state, table: ()} for state in states)))
    for table in INFOS:
        for row in dict.fromkeys(row for state in states for row in state.get(table, ())):
            kept = tuple({**s, table: tuple(r for r in s.get(table, ()) if r != row)} for s in states)
            yield replace(case, history=History(kept))
        for number, state in enumerate(states):
            for place in range(len(state.get(table, ()))):
                less = {**state, table: state[table][:place] + state[table][place + 1 :]}
                yield replace(case, history=History((*states[:number], less, *states[number + 1 :])))


def _smaller_queries(case: Case) -> Iterator[Case]:
    if case.query is None:
        return
    seen = {case.sql}
    for query in sorted(smaller(case.query), key=lambda one: len(one.sql)):
        if query.sql not in seen:
            seen.add(query.sql)
            yield replace(case, query=query, sql=query.sql, truth=query.text(duck=True))


def smaller(node: Any) -> Iterator[Any]:
    """Every tree that is this one with one part left out or made simpler."""
    yield from _here(node)
    if not is_dataclass(node):
        return
    for one in fields(node):
        value = getattr(node, one.name)
        if isinstance(value, tuple):
            for place, part in enumerate(value):
                for less in smaller(part):
                    yield replace(node, **{one.name: (*value[:place], less, *value[place + 1 :])})
        elif is_dataclass(value):
            for less in smaller(value):
                yield replace(node, **{one.name: less})


def _here(node: Any) -> Iterator[Any]:
    if isinstance(node, Query):
        yield from _without(node, "ctes")
        yield from (replace(node, tail="") for _ in (1,) if node.tail)
        if isinstance(node.body, Union):
            yield from (replace(node, body=side) for side in (node.body.left, node.body.right))
        elif isinstance(node.body, Select):
            subs = (node.body.source, *(join.source for join in node.body.joins))
            yield from (source.query for source in subs if isinstance(source, Sub))
        yield from (cte.query for cte in node.ctes)
    elif isinstance(node, Select):
        for name in ("items", "joins", "keys"):
            yield from (one for one in _without(node, name) if one.items)
        for name in ("where", "having", "qualify"):
            yield from (replace(node, **{name: None}) for _ in (1,) if getattr(node, name))
        yield from (replace(node, distinct=False) for _ in (1,) if node.distinct)
        yield from (replace(node, group_all=False) for _ in (1,) if node.group_all)
    elif isinstance(node, Sub):
        if isinstance(node.query.body, Select) and node.alias and isinstance(node.query.body.source, Table):
            yield replace(node.query.body.source, alias=node.alias)
    elif isinstance(node, Join):
        if node.kind != "JOIN" and node.on is not None:
            yield replace(node, kind="JOIN")
    elif isinstance(node, Key):
        yield from (Key(node.expr) for _ in (1,) if node.style != "expr")
    elif isinstance(node, Col):
        yield from (replace(node, spelled=None) for _ in (1,) if node.spelled)
    elif isinstance(node, AliasRef):
        yield node.meaning
    elif isinstance(node, Op):
        yield from _simpler(node)


def _simpler(node: Op) -> Iterator[Expr]:
    yield from (arg for arg in node.args if isinstance(arg, (Op, Col)) and arg.kind == node.kind)
    if node.aggregate and node.spark != "count(*)":
        yield Op("int", "count(*)", aggregate=True)
    elif not node.aggregate and node.args and node.kind in _SIMPLE:
        yield Op(node.kind, _SIMPLE[node.kind])


def _without(node: Any, name: str) -> Iterator[Any]:
    value = getattr(node, name)
    yield from (replace(node, **{name: value[:place] + value[place + 1 :]}) for place in range(len(value)))


def told(case: Case, outcome: Outcome) -> str:
    """All that is needed to see the failure again."""
    lines = [f"{outcome.status} by {outcome.strategy or 'no plan'} in batch {outcome.batch} (seed {case.seed})"]
    lines += [f"  {case.sql}", f"  {outcome.detail}"]
    options = [f"force={case.force}" if case.force else "", "large" if case.large else ""]
    options += ["zones is a lookup" if case.infos is INFOS else ""]
    if any(options):
        lines.append(f"  ({', '.join(option for option in options if option)})")
    for number, state in enumerate(case.history.states):
        for table, rows in state.items():
            lines += [f"  batch {number}: {table} {row}" for row in rows]
    return "\n".join(lines)
