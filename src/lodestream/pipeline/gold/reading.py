"""Reads a parsed query as scopes: tables, subqueries and common table expressions, each with its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from lodestream.pipeline.gold.lookup import nested, places
from lodestream.pipeline.gold.names import Names
from lodestream.pipeline.gold.parsing import Parsed, Span, parse_expression, span
from lodestream.pipeline.gold.pieces import Piece, column_piece
from lodestream.pipeline.gold.plan import InputInfo, NotProvableError
from lodestream.pipeline.gold.scopes import WHOLE, Condition, Item, Scope, Source, unnamed
from lodestream.pipeline.gold.tables import table_name


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
        for node, join in places(select):
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
            info = self.infos.get(table_name(node).lower())
            if info is None:
                raise NotProvableError(f"{table_name(node)} is read by the WITH that makes it", "give it another name")
            columns = tuple(column.lower() for column in info.columns)
            return Source(name, node, join, columns, table=info.name.lower())
        if isinstance(node, exp.Subquery) and name:
            branches = self.branches(node.this, self._with(node, known))
            return Source(name, node, join, branches[0].columns, branches=branches)
        if isinstance(node, exp.Subquery):
            branches = self.branches(node.this, self._with(node, known))
            return Source(unnamed(node), node, join, branches[0].columns, branches=branches)
        called = "a function" if isinstance(node, exp.Table) else node.key.upper()
        raise NotProvableError(f"{called} is read as a table")

    def _elsewhere(self, select: exp.Select, known: Mapping[str, _Cte]) -> Iterator[str]:
        """Tables read in expressions: IN (SELECT ...), EXISTS, scalar subqueries."""
        for query in nested(select):
            yield from self._read_by(query, known)

    def _read_by(self, query: exp.Expr, known: Mapping[str, _Cte]) -> Iterator[str]:
        own = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
        for table in query.find_all(exp.Table):
            cte = None if table.db else known.get(table.name.lower())
            if cte is not None:
                yield from self._read_by(cte.query, cte.known)
            elif isinstance(table.this, exp.Identifier) and (table.db or table.name.lower() not in own):
                yield table_name(table).lower()


_alone = lru_cache(maxsize=4096)(parse_expression)


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


def _marked(branches: tuple[Scope, ...], shared: bool) -> tuple[Scope, ...]:
    """Below a shared expression everything is shared."""
    if shared:
        for scope in branches:
            scope.sources = tuple(
                Source(s.alias, s.node, s.join, s.columns, s.table, _marked(s.branches, True), s.on, True)
                for s in scope.sources
            )
    return branches
