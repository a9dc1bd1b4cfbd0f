# ruff: noqa: S608 - SQL is what this module makes, from trees that were parsed
"""Delta for groups: what is stored per group, how a change is added to it, how the user's columns are read off."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from lodestream.pipeline.gold.functions import aggregate, session_window
from lodestream.pipeline.gold.measures import Measures
from lodestream.pipeline.gold.plan import (
    BOTH,
    DELTA,
    FOLDED,
    GOLD,
    NEGATIVE,
    STATE,
    STATE_COLUMN,
    WEIGHT,
    NotProvableError,
    StateColumn,
)
from lodestream.pipeline.gold.query import Query, Source
from lodestream.pipeline.gold.rewriting import quoted, read_views, replaced, select_sql
from lodestream.pipeline.gold.stream import refuse_neighbours, the_stream


@dataclass(frozen=True, slots=True)
class Groups:
    """A proven delta: `keys` are k1, k2, ... over rows, `presented` the user's columns over keys and states."""

    query: Query
    stream: Source
    keys: tuple[tuple[str, exp.Expr], ...]
    measures: Measures
    presented: tuple[tuple[str, exp.Expr], ...]
    having: exp.Expr | None

    @property
    def exposed(self) -> dict[str, str]:
        """Group keys that the user's own columns carry: k1 -> column name."""
        found: dict[str, str] = {}
        for key, expression in self.keys:
            for output in self.query.outputs:
                if output.expression == expression:
                    found.setdefault(key, output.name)
        return found

    @property
    def state_names(self) -> tuple[str, ...]:
        return (*(name for name, _ in self.keys), *(column.name for column in self.measures.states))

    @property
    def hidden(self) -> tuple[StateColumn, ...]:
        """What is stored beside the user's columns; with HAVING nothing of theirs is stored, so every key is."""
        shown = {} if self.having is not None else self.exposed
        keys = [StateColumn(key, None, f"group key {e.sql('spark')}") for key, e in self.keys if key not in shown]
        return (*keys, *self.measures.states)


def prove_groups(query: Query) -> Groups:
    stream = the_stream(query)
    group = query.group or ()
    if query.group is None:
        raise NotProvableError("it gives a row per row")
    _refuse_shapes(query)
    keys = tuple((f"k{index}", key) for index, key in enumerate(group, 1))
    measures = Measures(query.column_type)
    presented = tuple((output.name, _over_state(output.expression, keys, measures)) for output in query.outputs)
    clause = query.select.args.get("having")
    having = _over_state(clause.this, keys, measures) if clause else None
    return Groups(query, stream, keys, measures, presented, having)


def _refuse_shapes(query: Query) -> None:
    refuse_neighbours(query)
    if query.select.args.get("distinct") and query.select.args.get("group"):
        raise NotProvableError("DISTINCT over groups removes rows that cannot be counted back", "drop DISTINCT")
    if any(session_window(key) for key in query.group or ()):
        raise NotProvableError("a session can merge with or split from its neighbours")


def _over_state(expression: exp.Expr, keys: tuple[tuple[str, exp.Expr], ...], measures: Measures) -> exp.Expr:
    """Rewrite a select item from rows to state: group keys and aggregates become state columns."""

    def known(node: exp.Expr) -> exp.Expr | None:
        for name, key in keys:
            if node == key:
                return exp.column(name)
        if aggregate(node):
            return measures.answer(node)
        if isinstance(node, exp.Column):
            raise NotProvableError(f"{node.sql('spark')} is neither grouped nor aggregated")
        return None

    return replaced(expression, known)


def rows_sql(groups: Groups, *, feed: bool) -> str:
    """One row per input row: its group keys, the arguments of the aggregates, its weight."""
    weight = f"{groups.stream.alias}.{WEIGHT}" if feed else "1"
    items = [f"{expression.sql('spark')} AS {name}" for name, expression in groups.keys]
    items += [f"{text} AS {name}" for text, name in groups.measures.arguments.items()]
    source = read_views(groups.query.select, feeds=(groups.stream.alias,) if feed else ())
    for clause in ("group", "having", "distinct"):
        source.set(clause, None)
    return select_sql([*items, f"{weight} AS {WEIGHT}"], source)


def delta_sql(groups: Groups, *, feed: bool = True) -> str:
    names = [name for name, _ in groups.keys]
    states = [f"{expression} AS {column.name}" for column, expression in groups.measures.states.items()]
    grouped = f" GROUP BY {', '.join(names)}" if names else ""
    return f"SELECT {', '.join(names + states)} FROM ({rows_sql(groups, feed=feed)}) AS _lode_rows{grouped}"


def both_sql(groups: Groups) -> str:
    """The stored groups and the delta's."""
    columns = ", ".join([name for name, _ in groups.keys] + [state.name for state in groups.measures.states])
    return f"SELECT {columns} FROM {STATE} UNION ALL SELECT {columns} FROM {DELTA}"


def fold_sql(groups: Groups) -> str:
    """Stored groups plus the delta; a group that lost its last row disappears (the one global group never does)."""
    names = [name for name, _ in groups.keys]
    states = list(groups.measures.states)
    sums = [f"CAST(SUM({s.name}) AS {str(s.type).upper()}) AS {s.name}" for s in states]
    grouped = f" GROUP BY {', '.join(names)}" if names else ""
    kept = "SUM(n) <> 0" if names else "TRUE"
    having = f" HAVING CASE WHEN SUM(n) < 0 THEN RAISE_ERROR('{NEGATIVE}') ELSE {kept} END"
    return f"SELECT {', '.join(names + sums)} FROM {BOTH}{grouped}{having}"


def present_sql(groups: Groups, source: str = FOLDED) -> str:
    items = [f"{expression.sql('spark')} AS {quoted(name)}" for name, expression in groups.presented]
    where = f" WHERE {groups.having.sql('spark')}" if groups.having is not None else ""
    return f"SELECT {', '.join(items)} FROM {source}{where}"


def store_sql(groups: Groups, source: str = FOLDED) -> str:
    """The user's columns and, beside them, the hidden state: one table, one atomic overwrite.

    HAVING hides groups that may come back, so their state cannot live in rows that readers see.
    """
    if groups.having is not None:
        return f"SELECT {', '.join(groups.state_names)} FROM {source}"
    items = [f"{expression.sql('spark')} AS {quoted(name)}" for name, expression in groups.presented]
    fields = ", ".join(f"'{column.name}', {column.name}" for column in groups.hidden)
    return f"SELECT {', '.join(items)}, NAMED_STRUCT({fields}) AS {STATE_COLUMN} FROM {source}"


def stored_keys(groups: Groups) -> tuple[tuple[str, str], ...]:
    """Where a stored row has its group keys: in the user's columns, or hidden beside them."""
    if groups.having is not None:
        return tuple((key, key) for key, _ in groups.keys)
    shown = groups.exposed
    return tuple((key, quoted(shown[key]) if key in shown else f"{STATE_COLUMN}.{key}") for key, _ in groups.keys)


def unpack_sql(groups: Groups) -> str:
    if groups.having is not None:
        return f"SELECT {', '.join(groups.state_names)} FROM {GOLD}"
    keys = [f"{quoted(column)} AS {key}" for key, column in groups.exposed.items()]
    states = [f"{STATE_COLUMN}.{column.name} AS {column.name}" for column in groups.hidden]
    return f"SELECT {', '.join(keys + states)} FROM {GOLD}"
