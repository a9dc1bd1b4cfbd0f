"""What each SELECT of a query sees: its sources with their columns, and those of the queries around it.

Names are looked up by the rule of the Gold planner. Where the planner refuses what it cannot follow, this reading
leaves the columns open: None, and nothing is said about them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from lodestream.pipeline.gold.lookup import Readable, holders, is_star, nested, places
from lodestream.pipeline.gold.tables import table_name

# A table's columns: name to Spark type, None where the type is not known.
Columns = Mapping[str, str | None]
_Known = Mapping[str, Columns | None]


@dataclass(frozen=True, slots=True)
class Source:
    """One item of FROM. `columns` is None when they are not known, `title` what a message calls it."""

    alias: str
    title: str
    columns: Columns | None
    table: str | None = None
    shown: bool = True  # in `*`

    @property
    def readable(self) -> Readable:
        return self.alias, self.table, {name.lower() for name in self.columns or ()}


@dataclass(slots=True)
class Level:
    """One SELECT with its sources, inside of another one or not."""

    select: exp.Select
    outer: Level | None
    sources: list[Source] = field(default_factory=list)
    # Joins with USING: how many sources stand before the joined one, and the names that both sides must have.
    merged: list[tuple[int, exp.Join]] = field(default_factory=list)

    @property
    def visible(self) -> list[Source]:
        """Every source that a name may mean; an inner one hides an outer one of the same alias."""
        found: dict[str, Source] = {}
        level: Level | None = self
        while level is not None:
            for source in level.sources:
                found.setdefault(source.alias, source)
            level = level.outer
        return list(found.values())


class Levels:
    """The SELECTs of one query over tables whose columns are known, or open. `given` is what the query gives."""

    def __init__(self, tree: exp.Query, tables: _Known) -> None:
        self._tables = {name.lower(): columns for name, columns in tables.items()}
        self._levels: dict[int, Level] = {}
        self.given = self._read(tree, None, {})

    def __iter__(self) -> Iterator[Level]:
        return iter(self._levels.values())

    def of(self, node: exp.Expr) -> Level | None:
        """The SELECT that a node belongs to; None for the ORDER BY of a UNION, which belongs to no one."""
        return self._levels.get(id(node.find_ancestor(exp.Select, exp.SetOperation)))

    def kind(self, column: exp.Column) -> str | None:
        """The declared type of a column that can only be this one."""
        level = self.of(column)
        return _kind(level, column) if level is not None else None

    def _read(self, node: exp.Expr, outer: Level | None, known: _Known) -> Columns | None:
        known = self._with(node, outer, known)
        if isinstance(node, exp.Subquery):
            found = self._read(node.this, outer, known)
            return None if node.args.get("pivots") or node.args.get("joins") else found
        if isinstance(node, exp.SetOperation):
            left, right = self._read(node.left, outer, known), self._read(node.right, outer, known)
            return None if node.args.get("by_name") else _united(left, right)
        return self._select(node, outer, known) if isinstance(node, exp.Select) else None

    def _with(self, node: exp.Expr, outer: Level | None, known: _Known) -> _Known:
        found = dict(known)
        with_ = node.args.get("with_")
        for cte in with_.expressions if with_ is not None else ():
            given = self._read(cte.this, outer, found)
            found[cte.alias.lower()] = _renamed(cte, given)
        return found

    def _select(self, select: exp.Select, outer: Level | None, known: _Known) -> Columns | None:
        level = self._levels[id(select)] = Level(select, outer)
        for node, join in places(select):
            shown = join is None or join.kind not in ("SEMI", "ANTI")
            if join is not None and join.args.get("using"):
                level.merged.append((len(level.sources), join))
            level.sources.append(self._source(node, level, known, shown))
            if node.args.get("joins"):
                level.sources.append(Source("_unread", "", None))
        level.sources += [self._lateral(one, level, known) for one in select.args.get("laterals") or []]
        for query in nested(select):
            self._read(query, level, known)
        return _given(level)

    def _source(self, node: exp.Expr, level: Level, known: _Known, shown: bool) -> Source:
        alias = str(node.alias_or_name).lower()
        if isinstance(node, exp.Lateral | exp.Unnest):
            return self._lateral(node, level, known)
        if isinstance(node, exp.Subquery):
            columns = _renamed(node, self._read(node, level.outer, known))
            return Source(alias, alias or "the subquery", columns, shown=shown)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return Source(alias or "_unread", alias, None)
        name = table_name(node).lower()
        if node.args.get("pivots"):
            return Source(alias, alias, None)
        if not node.db and name in known:
            return Source(alias, alias, _renamed(node, known[name]), shown=shown)
        title = ".".join(part.name for part in node.parts)
        return Source(alias, title, _renamed(node, self._tables.get(name)), name, shown)

    def _lateral(self, node: exp.Expr, level: Level, known: _Known) -> Source:
        """It sees what stands before it. Without names of its own a generator gives those of its function."""
        alias = node.args.get("alias")
        given = self._read(node.this, level, known) if isinstance(node.this, exp.Query) else None
        name = str(alias.name).lower() if alias is not None else ""
        return Source(name or "_generated", name, _renamed(node, given))


def aliases(select: exp.Select) -> set[str]:
    """The names that the SELECT list gives."""
    found: set[str] = set()
    for item in select.expressions:
        if isinstance(item, exp.Aliases):
            found |= {str(name).lower() for name in item.aliases}
        elif item.alias:
            found.add(item.alias.lower())
    return found


def _renamed(node: exp.Expr, given: Columns | None) -> Columns | None:
    names = node.alias_column_names
    return dict.fromkeys(names) if names else given


def _united(left: Columns | None, right: Columns | None) -> Columns | None:
    """The names of the first branch; a type only where both have it, for Spark widens those that differ."""
    if left is None or right is None or len(left) != len(right):
        return dict.fromkeys(left) if left is not None else None
    return {
        name: kind if kind == other else None for (name, kind), other in zip(left.items(), right.values(), strict=True)
    }


def _given(level: Level) -> Columns | None:
    """The columns that a SELECT gives to whoever reads it."""
    if level.select.args.get("kind"):
        return None
    found: dict[str, str | None] = {}
    for item in level.select.expressions:
        given = _item(level, item)
        if given is None:
            return None
        found |= given
    return found


def _item(level: Level, item: exp.Expr) -> Columns | None:
    if is_star(item):
        return _starred(level, item)
    if isinstance(item, exp.Aliases):
        return dict.fromkeys(str(name) for name in item.aliases)
    value = item.unalias()
    name = item.alias if isinstance(item, exp.Alias) else item.name if isinstance(item, exp.Column | exp.Dot) else ""
    if not name:
        return None  # Spark names it by its text, a generator by its function
    return {name: _kind(level, value) if isinstance(value, exp.Column) else None}


def _starred(level: Level, item: exp.Expr) -> Columns | None:
    star = item if isinstance(item, exp.Star) else item.this
    wanted = item.table.lower() if isinstance(item, exp.Column) else None
    chosen = [source.columns for source in level.sources if source.shown and wanted in (None, source.alias)]
    if any(star.args.values()) or not chosen or any(columns is None for columns in chosen):
        return None
    return {name: kind for columns in chosen for name, kind in (columns or {}).items()}


def _kind(level: Level, column: exp.Column) -> str | None:
    names = [str(part.name).lower() for part in column.parts]
    meant = [one for one in level.sources if len(names) == 1 or one.alias == names[0]]
    found = holders(names, (one.readable for one in meant))
    if len(found) != 1 or found[0][1] != len(names) or any(one.columns is None for one in meant):
        return None
    return next(_kinds(meant, found[0][0], names[-1]), None)


def _kinds(sources: list[Source], alias: str, name: str) -> Iterator[str | None]:
    for source in sources:
        for spelled, kind in (source.columns or {}).items():
            if source.alias == alias and spelled.lower() == name:
                yield kind
