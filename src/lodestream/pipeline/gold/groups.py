# ruff: noqa: S608 - SQL is what this module makes, from the user's own text
"""Delta for groups: what is stored per group, how a change is added to it, how the user's columns are read off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from lodestream.names import STATE_COLUMN, WEIGHT
from lodestream.pipeline.gold.functions import aggregate, session_window
from lodestream.pipeline.gold.kinds import Kinds
from lodestream.pipeline.gold.measures import Measures
from lodestream.pipeline.gold.names import Names
from lodestream.pipeline.gold.pieces import Piece, quoted
from lodestream.pipeline.gold.plan import BOTH, DELTA, FOLDED, GOLD, NEGATIVE, STORED, NotProvableError, StateColumn
from lodestream.pipeline.gold.query import Query
from lodestream.pipeline.gold.scopes import Item, Scope
from lodestream.pipeline.gold.stream import Stream, refuse_neighbours, the_stream
from lodestream.pipeline.gold.weighted import selecting, weight_of

Keys = tuple[tuple[str, Piece], ...]


@dataclass(frozen=True, slots=True)
class Groups:
    """A proven delta: `keys` are k1, k2, ... over rows, `presented` the user's columns over keys and states."""

    query: Query
    stream: Stream
    keys: Keys
    measures: Measures
    presented: tuple[tuple[str, str], ...]
    having: str | None

    @property
    def exposed(self) -> dict[str, str]:
        """Group keys that the user's own columns carry: k1 -> column name."""
        found: dict[str, str] = {}
        for key, piece in self.keys:
            for output in self.query.outputs:
                if output.piece.tree == piece.tree:
                    found.setdefault(key, output.name)
        return found

    @property
    def state_names(self) -> tuple[str, ...]:
        return (*(name for name, _ in self.keys), *(column.name for column in self.measures.states))

    @property
    def hidden(self) -> tuple[StateColumn, ...]:
        """What is stored beside the user's columns; with HAVING nothing of theirs is stored, so every key is."""
        shown = {} if self.having is not None else self.exposed
        keys = [StateColumn(key, None, f"group key {piece.text}") for key, piece in self.keys if key not in shown]
        return (*keys, *self.measures.states)


def prove_groups(query: Query) -> Groups:
    stream = the_stream(query)
    scope, names = query.top, query.top.names
    if scope.group is None or names is None:
        raise NotProvableError("it gives a row per row")
    _refuse_shapes(scope)
    keys: Keys = tuple((f"k{index}", key) for index, key in enumerate(scope.group, 1))
    measures = Measures(scope, names, Kinds(query.statement.infos))
    over = _OverState(names, keys, measures)
    presented = tuple((item.name, over.item(item)) for item in scope.items)
    having = over.text(scope.having, "having") if scope.having is not None else None
    return Groups(query, stream, keys, measures, presented, having)


def _refuse_shapes(scope: Scope) -> None:
    refuse_neighbours(scope)
    if scope.distinct and scope.select is not None and scope.select.args.get("group"):
        raise NotProvableError(
            "DISTINCT over groups removes rows that cannot be counted back",
            "drop DISTINCT if every group key is in the SELECT list, else make a table of the groups",
        )
    if scope.distinct and any(has_call(item) for item in scope.items):
        raise NotProvableError("DISTINCT over aggregates removes rows that cannot be counted back", "drop DISTINCT")
    if any(key.tree.find(exp.Query) is not None for key in scope.group or ()):
        raise NotProvableError("a group key is a subquery of its own", "join the table instead")
    if any(session_window(key.tree) for key in scope.group or ()):
        raise NotProvableError("a session can merge with or split from its neighbours")


def has_call(item: Item) -> bool:
    return any(aggregate(node) for node in item.piece.tree.walk())


@dataclass(frozen=True, slots=True)
class _OverState:
    """Turns a select item from rows to state: group keys and aggregates become state columns."""

    names: Names
    keys: Keys
    measures: Measures

    def item(self, item: Item) -> str:
        if item.node is not None:
            return self.text(item.node, "items")
        for name, key in self.keys:
            if key.tree == item.piece.tree:
                return name
        raise NotProvableError(f"{item.name} is neither grouped nor aggregated")

    def text(self, node: exp.Expr, clause: str) -> str:
        return self.names.spliced(node, lambda part: self._known(part, clause))

    def _known(self, node: exp.Expr, clause: str) -> str | None:
        if isinstance(node, exp.Column) and (item := self.names.behind(node, clause)) is not None:
            return self.item(item)
        if aggregate(node):
            return self.measures.answer(node)
        if isinstance(node, (exp.Condition, exp.Dot)):
            found = self._key(self.names.tree(node, clause))
            if found is not None:
                return found
        if isinstance(node, exp.Column):
            raise NotProvableError(f"{self.names.written(node)} is neither grouped nor aggregated")
        return None

    def _key(self, tree: exp.Expr) -> str | None:
        """The key that the tree is, or the field of one: `window.start`."""
        for name, key in self.keys:
            if tree == key.tree:
                return name
        if isinstance(tree, exp.Dot) and (inner := self._key(tree.this)) is not None:
            return f"{inner}.{quoted(tree.expression.name)}"
        return None


def delta_sql(groups: Groups, *, feed: bool = True, scans: Mapping[int, str] | None = None) -> str:
    names = [name for name, _ in groups.keys]
    states = [f"{expression} AS {column.name}" for column, expression in groups.measures.states.items()]
    grouped = f" GROUP BY {', '.join(names)}" if names else ""
    rows = _rows_sql(groups, feed=feed, scans=scans)
    return f"SELECT {', '.join(names + states)} FROM ({rows}) AS _lode_rows{grouped}"


def _rows_sql(groups: Groups, *, feed: bool, scans: Mapping[int, str] | None) -> str:
    """One row per input row: its group keys, the arguments of the aggregates, its weight."""
    items = [f"({piece.text}) AS {name}" for name, piece in groups.keys]
    items += [f"({text}) AS {name}" for text, name in groups.measures.arguments.items()]
    weight = weight_of(groups.stream) if feed else f"1 AS {WEIGHT}"
    return selecting(groups.query, [*items, weight], groups.stream if feed else None, scans)


def both_sql(groups: Groups) -> str:
    """The stored groups and the delta's."""
    columns = ", ".join([name for name, _ in groups.keys] + [state.name for state in groups.measures.states])
    return f"SELECT {columns} FROM {STORED} UNION ALL SELECT {columns} FROM {DELTA}"


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
    items = [f"{text} AS {quoted(name)}" for name, text in groups.presented]
    where = f" WHERE {groups.having}" if groups.having is not None else ""
    return f"SELECT {', '.join(items)} FROM {source}{where}"


def store_sql(groups: Groups, source: str = FOLDED) -> str:
    """The user's columns and, beside them, the hidden state: one table, one atomic overwrite.

    HAVING hides groups that may come back, so their state cannot live in rows that readers see.
    """
    if groups.having is not None:
        return f"SELECT {', '.join(groups.state_names)} FROM {source}"
    items = [f"{text} AS {quoted(name)}" for name, text in groups.presented]
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
