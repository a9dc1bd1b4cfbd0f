"""The SELECTs of a query, one inside the other: sources, items, conditions and groups, with every name resolved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from lodestream.pipeline.gold.parsing import span
from lodestream.pipeline.gold.pieces import Piece
from lodestream.pipeline.gold.plan import NotProvableError

if TYPE_CHECKING:
    from lodestream.pipeline.gold.names import Names

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
