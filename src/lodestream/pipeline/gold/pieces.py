"""An expression of the user's query as two things at once: a tree to reason about, and the text that Spark gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from lodestream.pipeline.gold.parsing import nodes


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class Ref:
    """A column of a source. `written` is its name as the user spelled it: structs call their fields by it."""

    alias: str
    name: str
    written: str

    def __str__(self) -> str:
        return f"{quoted(self.alias)}.{self.written}"


@dataclass(frozen=True, slots=True)
class Piece:
    """`tree` has every column resolved (`alias.name`, lower case); `parts` is the text with places for columns."""

    tree: exp.Expr
    parts: tuple[str | Ref, ...]

    @property
    def text(self) -> str:
        return "".join(map(str, self.parts))

    @property
    def aliases(self) -> set[str]:
        return aliases(self.tree)

    @property
    def plain(self) -> bool:
        """Nothing but one column of a source."""
        return isinstance(self.tree, exp.Column)

    def over(self, columns: Mapping[tuple[str, str], Piece | None]) -> Piece | None:
        """The same expression one level down: each column replaced by what it stands for, in parentheses."""
        needed = {(c.table, c.name): columns.get((c.table, c.name)) for c in self.tree.find_all(exp.Column)}
        known = {key: piece for key, piece in needed.items() if piece is not None}
        if len(known) < len(needed):
            return None

        def below(node: exp.Expr) -> exp.Expr | None:
            return known[node.table, node.name].tree.copy() if isinstance(node, exp.Column) else None

        parts: list[str | Ref] = []
        for part in self.parts:
            inner = known.get((part.alias, part.name)) if isinstance(part, Ref) else None
            parts += [part] if inner is None else ["(", *inner.parts, ")"]
        return Piece(replaced(self.tree, below), tuple(parts))


def column_piece(alias: str, name: str, written: str | None = None) -> Piece:
    tree = exp.Column(this=exp.to_identifier(name.lower()), table=exp.to_identifier(alias))
    return Piece(tree, (Ref(alias, name.lower(), written or quoted(name)),))


def aliases(tree: exp.Expr) -> set[str]:
    return {str(column.table) for column in nodes(tree) if isinstance(column, exp.Column)}


def replaced(node: exp.Expr, known: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """A copy of the tree in which the topmost nodes that `known` answers for are replaced."""
    answer = known(node)
    if answer is not None:
        return answer
    args: dict[str, Any] = {}
    for key, value in node.args.items():
        if isinstance(value, exp.Expr):
            args[key] = replaced(value, known)
        elif isinstance(value, list):
            args[key] = [replaced(v, known) if isinstance(v, exp.Expr) else v for v in value]
        else:
            args[key] = value
    result = type(node)(**args)
    result.meta.update(node.meta)
    return result
