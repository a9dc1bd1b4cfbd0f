# ruff: noqa: S608 - SQL is what this module makes, from trees that were parsed
"""Delta: Gold tables whose groups are sums of their rows follow a change at the cost of the change."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from lodestream.pipeline.gold.functions import aggregate, session_window, unknown_function
from lodestream.pipeline.gold.measures import Measures
from lodestream.pipeline.gold.plan import (
    DELTA,
    FOLDED,
    GOLD,
    STATE,
    STATE_COLUMN,
    WEIGHT,
    GoldPlan,
    NotProvableError,
    StateColumn,
)
from lodestream.pipeline.gold.query import Query, Source
from lodestream.pipeline.gold.rewriting import quoted, read_views, replaced
from lodestream.pipeline.gold.statement import base_tables, table_name


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
        keys = [
            StateColumn(key, None, f"group key {e.sql('spark')}") for key, e in self.keys if key not in self.exposed
        ]
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


def the_stream(query: Query) -> Source:
    """The one input whose rows drive the table; every other must be a lookup that rows are joined to."""
    streams = {name.lower() for name in query.statement.streams}
    mentions = [t for t in base_tables(query.select) if table_name(t).lower() in streams]
    names = sorted({table_name(t) for t in mentions})
    if len(names) > 1:
        raise NotProvableError(
            f"{' and '.join(names)} are joined as streams: a change on one side meets every row of the other",
            "declare the slowly changing side with lookup=[...]",
        )
    if len(mentions) > 1:
        raise NotProvableError(f"it reads {names[0]} {len(mentions)} times", "read it once, or split the table in two")
    found = [source for source in query.sources() if source.node is mentions[0]] if mentions else []
    if not found:
        raise NotProvableError("its stream is inside a subquery that cannot be merged", "make the subquery a table")
    _refuse_outer_joins(query, found[0])
    return found[0]


def _refuse_outer_joins(query: Query, stream: Source) -> None:
    own = stream.join
    outer = own is not None and (own.side or own.kind not in ("", "INNER", "CROSS"))
    later = any(s.join is not None and s.join.side in ("RIGHT", "FULL") for s in query.sources())
    if outer or later:
        raise NotProvableError(
            "an outer join keeps rows that no stream row brought in", "put the stream first and use LEFT JOIN"
        )


def _refuse_shapes(query: Query) -> None:
    select = query.select
    if select.find(exp.Window) or select.args.get("qualify"):
        raise NotProvableError("a window function looks at neighbouring rows", "keep it in a table of its own")
    if select.args.get("distinct") and select.args.get("group"):
        raise NotProvableError("DISTINCT over groups removes rows that cannot be counted back", "drop DISTINCT")
    if select.find(exp.Limit):
        raise NotProvableError("a subquery with LIMIT depends on every row")
    if any(session_window(key) for key in query.group or ()):
        raise NotProvableError("a session can merge with or split from its neighbours")
    name = unknown_function(select)
    if name:
        raise NotProvableError(f"function {name} is not known to give the same answer twice", "compute it in Silver")


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
    source.set("expressions", [])
    return f"SELECT {', '.join([*items, f'{weight} AS {WEIGHT}'])} {source.sql('spark').removeprefix('SELECT').strip()}"


def delta_sql(groups: Groups, *, feed: bool = True) -> str:
    names = [name for name, _ in groups.keys]
    states = [f"{expression} AS {column.name}" for column, expression in groups.measures.states.items()]
    grouped = f" GROUP BY {', '.join(names)}" if names else ""
    return f"SELECT {', '.join(names + states)} FROM ({rows_sql(groups, feed=feed)}) AS _lode_rows{grouped}"


def fold_sql(groups: Groups) -> str:
    """Stored groups plus the delta; a group that lost its last row disappears (the one global group never does)."""
    names = [name for name, _ in groups.keys]
    states = list(groups.measures.states)
    both = ", ".join(names + [state.name for state in states])
    sums = [f"CAST(SUM({s.name}) AS {str(s.type).upper()}) AS {s.name}" for s in states]
    grouped = f" GROUP BY {', '.join(names)} HAVING SUM(n) <> 0" if names else ""
    union = f"SELECT {both} FROM {STATE} UNION ALL SELECT {both} FROM {DELTA}"
    return f"SELECT {', '.join(names + sums)} FROM ({union}) AS _lode_both{grouped}"


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


def unpack_sql(groups: Groups) -> str:
    if groups.having is not None:
        return f"SELECT {', '.join(groups.state_names)} FROM {GOLD}"
    keys = [f"{quoted(column)} AS {key}" for key, column in groups.exposed.items()]
    states = [f"{STATE_COLUMN}.{column.name} AS {column.name}" for column in groups.hidden]
    return f"SELECT {', '.join(keys + states)} FROM {GOLD}"


def delta_plan(query: Query) -> GoldPlan:
    groups = prove_groups(query)
    stream = _declared_name(query, groups.stream)
    exposed = groups.exposed
    whole = len(exposed) == len(groups.keys)
    scratch = f"({delta_sql(groups, feed=False)}) AS {FOLDED}"
    lookups = [name for name in query.statement.inputs if name != stream]
    return GoldPlan(
        strategy="delta",
        shape="groups",
        reason=f"every column is a sum over the rows of {stream}, so a change is added to its groups",
        cheaper=None,
        inputs=query.statement.inputs,
        columns=query.columns,
        keys=tuple(exposed.values()) if whole else (),
        full_sql=store_sql(groups, scratch),
        stream=stream,
        state_home="table" if groups.having is not None else "column",
        state_columns=groups.hidden,
        delta_sql=delta_sql(groups),
        fold_sql=fold_sql(groups),
        present_sql=present_sql(groups),
        store_sql=store_sql(groups),
        unpack_sql=unpack_sql(groups),
        on_lookup_change=dict.fromkeys(lookups, "full"),
        notes=(*query.notes, *groups.measures.notes),
    )


def _declared_name(query: Query, source: Source) -> str:
    info = query.info(source)
    if info is None:
        raise NotProvableError("its stream is inside a subquery")
    return info.name
