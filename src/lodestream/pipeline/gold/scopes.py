"""The SELECTs of a query, one inside the other, with every name resolved as Spark resolves it.

Where Spark's choice between two meanings is not certain, nothing is proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlglot import exp

from lodestream.pipeline.gold.functions import SESSION_WINDOW, WINDOW, has_aggregate
from lodestream.pipeline.gold.parsing import Parsed, Span, UnreadableError, call, parse, span
from lodestream.pipeline.gold.pieces import Piece, column_piece, replaced
from lodestream.pipeline.gold.plan import InputInfo, NotProvableError
from lodestream.pipeline.gold.tables import table_name

# The alias under which a UNION at the top is read.
WHOLE = "_lode_all"


@dataclass(frozen=True, slots=True)
class Item:
    """One output column; `node` is its expression in the user's text, None when `*` brought it."""

    name: str
    node: exp.Expr | None
    piece: Piece


@dataclass(frozen=True, slots=True)
class Condition:
    """One part of a WHERE or ON that must hold; `sides` are what it says to be equal, each over other sources."""

    piece: Piece
    sides: tuple[Piece, Piece] | None = None

    @property
    def null_safe(self) -> bool:
        return isinstance(self.piece.tree.unnest(), exp.NullSafeEQ)


@dataclass(frozen=True, slots=True)
class Source:
    """One item of FROM: a table, or a subquery with its branches (several for a UNION).

    `shared` means that its text is read more than once, as a common table expression with several readers.
    """

    alias: str
    node: exp.Expr
    join: exp.Join | None
    columns: tuple[str, ...]
    table: str | None = None
    branches: tuple[Scope, ...] = ()
    on: tuple[Condition, ...] = ()
    shared: bool = False

    @property
    def side(self) -> str:
        return str(self.join.side) if self.join is not None else ""

    @property
    def kind(self) -> str:
        return str(self.join.kind) if self.join is not None else ""


@dataclass(slots=True)
class Scope:
    """One SELECT. `group` is () for one group of all rows, None for a row per row."""

    select: exp.Select | None
    sources: tuple[Source, ...] = ()
    laterals: tuple[tuple[str, tuple[str, ...]], ...] = ()
    items: tuple[Item, ...] = ()
    where: tuple[Condition, ...] = ()
    group: tuple[Piece, ...] | None = None
    having: exp.Expr | None = None
    qualify: tuple[Piece, ...] = ()
    distinct: bool = False
    limited: bool = False
    read_elsewhere: frozenset[str] = frozenset()  # tables that subqueries of expressions read
    names: Names | None = field(default=None, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(item.name.lower() for item in self.items)

    @property
    def windows(self) -> list[exp.Window]:
        trees = [*(item.piece.tree for item in self.items), *(piece.tree for piece in self.qualify)]
        return [window for tree in trees for window in tree.find_all(exp.Window)]

    def piece(self, node: exp.Expr) -> Piece:
        """An expression of HAVING or of the SELECT list, its aliases written out."""
        if self.names is None:
            raise NotProvableError("it has no text of its own")
        return self.names.piece(node, "having")

    def every(self) -> Iterator[Scope]:
        """This SELECT and all below it."""
        yield self
        for source in self.sources:
            for branch in source.branches:
                yield from branch.every()


@dataclass(frozen=True, slots=True)
class _Cte:
    query: exp.Expr
    known: Mapping[str, _Cte]
    shared: bool


class Reader:
    """Reads the scopes of one parsed query over inputs whose columns are known."""

    def __init__(self, parsed: Parsed, infos: Mapping[str, InputInfo]) -> None:
        self.parsed = parsed
        self.infos = {name.lower(): info for name, info in infos.items()}

    def read(self, tree: exp.Query) -> Scope:
        branches = self.branches(tree, {})
        if isinstance(tree, exp.Select):
            return branches[0]
        source = Source(WHOLE, tree, None, branches[0].columns, branches=branches)
        pieces = [(item.name, column_piece(WHOLE, item.name)) for item in branches[0].items]
        return Scope(None, (source,), items=tuple(Item(name, None, piece) for name, piece in pieces))

    def branches(self, node: exp.Expr, known: Mapping[str, _Cte]) -> tuple[Scope, ...]:
        known = self._with(node, known)
        if isinstance(node, exp.Subquery):
            return self.branches(node.this, known)
        if isinstance(node, exp.Select):
            return (self._scope(node, known),)
        if isinstance(node, exp.Union):
            if node.args.get("limit") or node.args.get("offset"):
                raise NotProvableError("a subquery with LIMIT depends on every row")
            found = (*self.branches(node.left, known), *self.branches(node.right, known))
            if len({len(scope.items) for scope in found}) != 1:
                raise NotProvableError("the branches of a UNION have different numbers of columns")
            return found
        raise NotProvableError(f"{node.key.upper()} compares two queries as wholes")

    def text(self, node: exp.Expr) -> Span:
        """The node's place in the text, once it is certain that this text by itself means the node."""
        place = span(node)
        if isinstance(node, (exp.Column, exp.Literal)):
            return place
        text = self.parsed.plain[slice(*place)]
        if _alone(text) != node:
            raise NotProvableError(f"{text.strip()} cannot be told apart from its neighbours in the text")
        return place

    def _with(self, node: exp.Expr, known: Mapping[str, _Cte]) -> dict[str, _Cte]:
        found = dict(known)
        with_ = node.args.get("with_")
        for cte in with_.expressions if with_ is not None else ():
            if cte.args["alias"].args.get("columns"):
                raise NotProvableError(f"{cte.alias} renames its columns in WITH", "name them in its SELECT")
            name = cte.alias.lower()
            mentions = sum(1 for t in self._tables() if not t.db and t.name.lower() == name)
            found[name] = _Cte(cte.this, dict(found), mentions > 1)
        return found

    def _tables(self) -> Iterator[exp.Table]:
        for tree in self.parsed.trees:
            yield from tree.find_all(exp.Table)

    def _scope(self, select: exp.Select, known: Mapping[str, _Cte]) -> Scope:
        if select.args.get("from_") is None:
            raise NotProvableError("it reads no table")
        scope = Scope(select, limited=bool(select.args.get("limit") or select.args.get("offset")))
        names = scope.names = Names(self, scope)
        for node, join in _places(select):
            source = self._source(node, join, known)
            if any(other.alias == source.alias for other in scope.sources):
                raise NotProvableError(f"two tables are called {source.alias}")
            scope.sources = (*scope.sources, source)
            scope.sources = (*scope.sources[:-1], _with_condition(source, names))
        scope.laterals = tuple(_lateral(one) for one in select.args.get("laterals") or [])
        names.read_items(select)
        where = select.args.get("where")
        scope.where = tuple(names.conditions(where.this if where else None))
        having = select.args.get("having")
        scope.having = having.this if having else None
        qualify = select.args.get("qualify")
        scope.qualify = (names.piece(qualify.this, "having"),) if qualify else ()
        scope.distinct = bool(select.args.get("distinct"))
        scope.group = names.group(select)
        scope.read_elsewhere = frozenset(self._elsewhere(select, known))
        return scope

    def _source(self, node: exp.Expr, join: exp.Join | None, known: Mapping[str, _Cte]) -> Source:
        alias = node.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise NotProvableError("a table alias renames its columns", "name them in a subquery")
        name = str(node.alias_or_name).lower()
        cte = known.get(node.name.lower()) if isinstance(node, exp.Table) and not node.db else None
        if cte is not None:
            branches = self.branches(cte.query, cte.known)
            shared = cte.shared
            return Source(name, node, join, branches[0].columns, branches=_marked(branches, shared), shared=shared)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            info = self.infos[table_name(node).lower()]
            columns = tuple(column.lower() for column in info.columns)
            return Source(name, node, join, columns, table=info.name.lower())
        if isinstance(node, exp.Subquery) and name:
            branches = self.branches(node.this, self._with(node, known))
            return Source(name, node, join, branches[0].columns, branches=branches)
        if isinstance(node, exp.Subquery):
            branches = self.branches(node.this, self._with(node, known))
            return Source(unnamed(node), node, join, branches[0].columns, branches=branches)
        raise NotProvableError(f"{node.key.upper()} is read as a table")

    def _elsewhere(self, select: exp.Select, known: Mapping[str, _Cte]) -> Iterator[str]:
        """Tables read in expressions: IN (SELECT ...), EXISTS, scalar subqueries."""
        places = {id(node) for node, _ in _places(select)} | {id(select.args.get("with_"))}
        for query in _nested(select, places):
            yield from self._read_by(query, known)

    def _read_by(self, query: exp.Expr, known: Mapping[str, _Cte]) -> Iterator[str]:
        own = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
        for table in query.find_all(exp.Table):
            cte = None if table.db else known.get(table.name.lower())
            if cte is not None:
                yield from self._read_by(cte.query, cte.known)
            elif table.db or table.name.lower() not in own:
                yield table_name(table).lower()


@lru_cache(maxsize=4096)
def _alone(text: str) -> exp.Expr | None:
    """What the text means by itself."""
    try:
        found = parse(f"SELECT {text}").trees[0].expressions
    except UnreadableError:
        return None
    return found[0] if len(found) == 1 else None


class Names:
    """What the names in one SELECT mean."""

    def __init__(self, reader: Reader, scope: Scope) -> None:
        self._reader = reader
        self._scope = scope
        self._items: dict[str, Item] = {}
        self._time_windows: dict[str, exp.Expr] = {}

    def piece(self, node: exp.Expr, clause: str) -> Piece:
        """`clause` says which names are seen beside the columns of the sources: aliases, or only those before."""
        meant: dict[Span, Piece] = {}

        def resolved(found: exp.Expr) -> exp.Expr | None:
            if isinstance(found, exp.Query):
                return found.copy()
            if isinstance(found, exp.Column) and not isinstance(found.this, exp.Star):
                meant[span(found)] = self._meaning(found, clause)
                return meant[span(found)].tree.copy()
            return None

        start, end = self._reader.text(node)
        tree = replaced(node, resolved)
        plain = self._reader.parsed.plain
        parts: list[Any] = []
        for (first, last), piece in sorted(meant.items(), key=lambda pair: pair[0]):
            parts += [plain[start:first], *_wrapped(piece)]
            start = last
        return Piece(tree, (*parts, plain[start:end]))

    def conditions(self, node: exp.Expr | None) -> Iterator[Condition]:
        for part in conjuncts(node):
            sides = None
            if isinstance(part, (exp.EQ, exp.NullSafeEQ)):
                left, right = self.piece(part.left.unnest(), "where"), self.piece(part.right.unnest(), "where")
                sides = (left, right) if len(left.aliases) == len(right.aliases) == 1 else None
            yield Condition(self.piece(part, "where"), sides)

    def tree(self, node: exp.Expr, clause: str) -> exp.Expr:
        """The node with its columns resolved, for comparisons."""

        def resolved(found: exp.Expr) -> exp.Expr | None:
            if isinstance(found, exp.Query):
                return found.copy()
            if isinstance(found, exp.Column) and not isinstance(found.this, exp.Star):
                return self._meaning(found, clause).tree.copy()
            return None

        return replaced(node, resolved)

    def behind(self, column: exp.Column, clause: str) -> Item | None:
        """The item of the SELECT list that a name stands for, when it is no column of the inputs."""
        names = [str(part.name).lower() for part in column.parts]
        return None if len(names) > 1 or self._columns(names) or clause == "where" else self._items.get(names[0])

    def spliced(self, node: exp.Expr, known: Callable[[exp.Expr], str | None]) -> str:
        """The node's text with the topmost parts that `known` answers for replaced, each in parentheses."""
        found: dict[Span, str] = {}

        def look(part: exp.Expr) -> None:
            text = known(part)
            if text is not None:
                found[span(part)] = text
            elif isinstance(part, exp.Query):
                raise NotProvableError("a subquery in an expression over groups")
            else:
                for child in part.iter_expressions():
                    look(child)

        look(node)
        start, end = self._reader.text(node)
        parts = []
        for (first, last), text in sorted(found.items()):
            parts += [self._reader.parsed.plain[start:first], text if text.isidentifier() else f"({text})"]
            start = last
        return "".join([*parts, self._reader.parsed.plain[start:end]])

    def read_items(self, select: exp.Select) -> None:
        self._time_windows = _time_windows(select)
        for node in select.expressions:
            if isinstance(node, exp.Aliases):
                raise NotProvableError("a function gives several columns at once")
            if _is_star(node):
                self._scope.items += tuple(self._starred(node))
                continue
            expression = node.unalias()
            item = Item(node.alias_or_name, expression, self.piece(expression, "items"))
            self._scope.items += (item,)
            if isinstance(node, exp.Alias):
                self._items.setdefault(item.name.lower(), item)

    def group(self, select: exp.Select) -> tuple[Piece, ...] | None:
        """The group expressions; () for one group of all rows; None when the query gives a row per row."""
        items = self._scope.items
        clause = select.args.get("group")
        if clause is None:
            if any(has_aggregate(item.piece.tree) for item in items) or select.args.get("having"):
                return ()
            distinct = self._scope.distinct and not self._scope.windows
            return tuple(item.piece for item in items) if distinct else None
        levels = clause.find(exp.Rollup, exp.Cube, exp.GroupingSets)
        if levels is not None:
            raise NotProvableError(f"{levels.key.upper()} mixes totals of several levels", "make one table per level")
        if clause.args.get("all"):
            return tuple(item.piece for item in items if not has_aggregate(item.piece.tree))
        return tuple(self._group_key(node) for node in clause.expressions)

    def _group_key(self, node: exp.Expr) -> Piece:
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) - 1 if node.name.isdigit() else -1
            if not 0 <= place < len(self._scope.items):
                raise NotProvableError(f"GROUP BY {node.name} names no column")
            return self._scope.items[place].piece
        return self.piece(node, "group")

    def _meaning(self, column: exp.Column, clause: str) -> Piece:
        parts = column.parts
        if any(not isinstance(part, exp.Identifier) for part in parts):
            raise NotProvableError(f"{column.name} is not a column of the inputs")
        names = [str(part.name).lower() for part in parts]
        found = self._columns(names)
        alias = self._items.get(names[0]) if clause != "where" else None
        if len(found) > 1:
            raise NotProvableError(f"{'.'.join(names)} may be a column of several inputs")
        if found:
            piece = self._column(found[0], parts)
            if alias is not None and clause == "having" and alias.piece.tree != piece.tree:
                raise NotProvableError(f"{names[0]} is a column of the inputs and of the table")
            return piece
        if alias is not None:
            return _dotted(alias.piece, parts[1:], self._reader.parsed.plain)
        if names[0] in self._time_windows and clause != "where":
            return _dotted(self.piece(self._time_windows[names[0]], "where"), parts[1:], self._reader.parsed.plain)
        raise NotProvableError(f"column {'.'.join(names)} is not a column of the inputs")

    def _columns(self, names: list[str]) -> list[tuple[str, int]]:
        """The sources that the name can belong to, each with the number of leading parts that name the column."""
        readable = [(source.alias, source.table, source.columns) for source in self._scope.sources]
        readable += [(alias, None, columns) for alias, columns in self._scope.laterals]
        qualified = [
            (alias, 2) for alias, _, columns in readable if names[0] == alias and names[1:2] and names[1] in columns
        ]
        if not qualified and len(names) > 2:
            qualified = [
                (alias, 3) for alias, table, columns in readable if ".".join(names[:2]) == table and names[2] in columns
            ]
        if qualified:
            return qualified
        return self._merged([(alias, 1) for alias, _, columns in readable if names[0] in columns], names[0])

    def written(self, node: exp.Expr) -> str:
        return self._reader.parsed.plain[slice(*span(node))]

    def holders(self, name: str) -> list[str]:
        """The sources so far that have such a column."""
        return [alias for alias, _ in self._columns([name])]

    def _merged(self, found: list[tuple[str, int]], name: str) -> list[tuple[str, int]]:
        """USING makes one column of two: the left one, unless the join can be without it."""
        for source in self._scope.sources:
            using = {str(one.name).lower() for one in (source.join.args.get("using") or [])} if source.join else set()
            if name in using and source.side in ("", "LEFT"):
                found = [pair for pair in found if pair[0] != source.alias]
        return found

    def _column(self, found: tuple[str, int], parts: Any) -> Piece:
        alias, length = found
        name = parts[length - 1]
        plain = self._reader.parsed.plain
        piece = column_piece(alias, str(name.name), plain[slice(*_place(name))])
        return _dotted(piece, parts[length:], plain)

    def _starred(self, node: exp.Expr) -> Iterator[Item]:
        star = node if isinstance(node, exp.Star) else node.this
        if any(star.args.get(clause) for clause in ("except_", "replace", "rename", "except")):
            raise NotProvableError("a star leaves columns out", "name the columns")
        if any(source.join is not None and source.join.args.get("using") for source in self._scope.sources):
            raise NotProvableError("a star over USING", "name the columns")
        if self._scope.laterals:
            raise NotProvableError("a star over LATERAL VIEW", "name the columns")
        wanted = str(node.table).lower() if isinstance(node, exp.Column) and node.table else None
        found = [one for one in self._scope.sources if wanted in (None, one.alias) and one.kind not in ("SEMI", "ANTI")]
        if not found:
            raise NotProvableError(f"{wanted}.* is not one of the tables that are read")
        for source in found:
            for name in self._spelled(source):
                yield Item(name, None, column_piece(source.alias, name))

    def _spelled(self, source: Source) -> list[str]:
        if source.table is not None:
            return list(self._reader.infos[source.table].columns)
        return [item.name for item in source.branches[0].items]


def unnamed(node: exp.Expr) -> str:
    """The name of a subquery that the user gave none; statements made from the text write it behind it."""
    return f"_lode_sub_{span(node)[0]}"


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    if condition is None:
        return
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        yield from conjuncts(inner.left)
        yield from conjuncts(inner.right)
    else:
        yield inner


def _places(select: exp.Select) -> list[tuple[exp.Expr, exp.Join | None]]:
    joined = [(join.this, join) for join in select.args.get("joins") or []]
    return [(select.args["from_"].this, None), *joined]


def _nested(select: exp.Select, places: set[int]) -> Iterator[exp.Expr]:
    stack = [child for child in select.iter_expressions() if id(child) not in places]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Query) and id(node) not in places:
            yield node
        elif id(node) not in places:
            stack += node.iter_expressions()


def _with_condition(source: Source, names: Names) -> Source:
    """The conditions of a join, seen with the sources up to it."""
    join = source.join
    if join is None:
        return source
    using = [str(one.name) for one in join.args.get("using") or []]
    if using:
        on = tuple(_equal_columns(names, source, name) for name in using)
    else:
        on = tuple(names.conditions(join.args.get("on")))
    return Source(source.alias, source.node, join, source.columns, source.table, source.branches, on, source.shared)


def _equal_columns(names: Names, source: Source, name: str) -> Condition:
    left = [alias for alias in names.holders(name.lower()) if alias != source.alias]
    if len(left) != 1 or name.lower() not in source.columns:
        raise NotProvableError(f"USING ({name}) may mean several columns", "write the join with ON")
    one, other = column_piece(left[0], name), column_piece(source.alias, name)
    tree = exp.EQ(this=one.tree.copy(), expression=other.tree.copy())
    return Condition(Piece(tree, (*one.parts, " = ", *other.parts)), (one, other))


def _lateral(node: exp.Expr) -> tuple[str, tuple[str, ...]]:
    alias = node.args.get("alias")
    if not isinstance(node, exp.Lateral) or alias is None or not node.args.get("view"):
        raise NotProvableError("LATERAL without VIEW is not followed from change to change")
    return str(alias.name).lower(), tuple(str(column.name).lower() for column in alias.args.get("columns") or [])


def _time_windows(select: exp.Select) -> dict[str, exp.Expr]:
    """`window.start` means the window of the GROUP BY."""
    clause = select.args.get("group")
    found = {call(node): node for node in clause.find_all(exp.Func)} if clause else {}
    return {name: found[name] for name in (WINDOW, SESSION_WINDOW) if name in found}


def _dotted(piece: Piece, fields: Any, plain: str) -> Piece:
    """A field of a struct."""
    tree, parts = piece.tree, piece.parts
    for part in fields:
        parts = (*(parts if len(parts) == 1 else ("(", *parts, ")")), "." + plain[slice(*_place(part))])
        tree = exp.Dot(this=tree.copy(), expression=exp.to_identifier(str(part.name).lower()))
    return Piece(tree, parts)


def _wrapped(piece: Piece) -> tuple[Any, ...]:
    return piece.parts if piece.plain else ("(", *piece.parts, ")")


def _place(identifier: exp.Expr) -> Span:
    meta = identifier.meta
    return (meta["start"], meta["end"] + 1) if "start" in meta else span(identifier)


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def _marked(branches: tuple[Scope, ...], shared: bool) -> tuple[Scope, ...]:
    """Below a shared expression everything is shared."""
    if shared:
        for scope in branches:
            scope.sources = tuple(
                Source(s.alias, s.node, s.join, s.columns, s.table, _marked(s.branches, True), s.on, True)
                for s in scope.sources
            )
    return branches


__all__ = ["WHOLE", "Condition", "Item", "Names", "Reader", "Scope", "Source"]
