"""What the names in one SELECT mean, as Spark resolves them. Where Spark's choice is not certain, nothing is proven."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lodestream.pipeline.gold.functions import SESSION_WINDOW, WINDOW, has_aggregate
from lodestream.pipeline.gold.lookup import Readable, holders, is_star
from lodestream.pipeline.gold.parsing import Span, call, span
from lodestream.pipeline.gold.pieces import Piece, column_piece, replaced
from lodestream.pipeline.gold.plan import NotProvableError
from lodestream.pipeline.gold.scopes import Condition, Item, Scope, Source, conjuncts

if TYPE_CHECKING:
    from lodestream.pipeline.gold.reading import Reader


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
            if is_star(node):
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
        readable: list[Readable] = [(source.alias, source.table, source.columns) for source in self._scope.sources]
        readable += [(alias, None, columns) for alias, columns in self._scope.laterals]
        found = holders(names, readable)
        return self._merged(found, names[0]) if found and found[0][1] == 1 else found

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
        if isinstance(node, exp.Column) and node.args.get("db"):
            raise NotProvableError("a star over the fields of a struct", "name the columns")
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
