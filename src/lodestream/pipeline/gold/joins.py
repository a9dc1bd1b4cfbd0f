"""What the joins of one SELECT say: which sources may be missing, which expressions are equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from lodestream.pipeline.gold.kinds import Kinds
from lodestream.pipeline.gold.locality import movable
from lodestream.pipeline.gold.pieces import Piece
from lodestream.pipeline.gold.plan import NotProvableError
from lodestream.pipeline.gold.scopes import Condition, Scope, Source

_FILTERING_KINDS = ("SEMI", "ANTI")


@dataclass(frozen=True, slots=True)
class Joins:
    """The sources of a SELECT and the equalities between them.

    `optional` are the sources that can be absent from an output row: the right side of LEFT, SEMI and ANTI joins,
    both sides of FULL. An equality holds wherever all its sources are present.
    """

    sources: tuple[Source, ...]
    optional: frozenset[str]
    full: bool
    equalities: tuple[tuple[Piece, Piece], ...]

    def over(self, alias: str, piece: Piece) -> Piece | None:
        """An expression over this source alone that has the same value in every output row it takes part in."""
        if self.full:
            return self._merged(alias, piece)
        if piece.aliases == {alias}:
            return None if alias in self.optional else piece
        if piece.aliases & self.optional:
            return None
        return self._equal(alias, piece.tree)

    def _equal(self, alias: str, tree: exp.Expr) -> Piece | None:
        # Where another optional source is absent, nothing is equal by way of it.
        others = self.optional - {alias}
        known = [(left, right) for left, right in self.equalities if not (left.aliases | right.aliases) & others]
        for members in _classes(known):
            if any(member.tree == tree for member in members):
                return next((member for member in members if member.aliases == {alias}), None)
        return None

    def _merged(self, alias: str, piece: Piece) -> Piece | None:
        """FULL JOIN: only coalesce(a.k, b.k) with a.k = b.k has a value that each side can tell by itself."""
        tree = piece.tree
        if not isinstance(tree, exp.Coalesce):
            return None
        parts = [tree.this, *tree.expressions]
        covered = {part.table for part in parts if isinstance(part, exp.Column)}
        if len(covered) < len(parts) or covered != {source.alias for source in self.sources}:
            return None
        same = [m for m in _classes(self.equalities) if all(any(member.tree == part for member in m) for part in parts)]
        return self._equal(alias, parts[0]) if same else None


def read_joins(scope: Scope, kinds: Kinds) -> Joins:
    optional: set[str] = set()
    full = False
    for source in scope.sources[1:]:
        if source.side == "RIGHT":
            raise NotProvableError("a RIGHT JOIN keeps rows of its second table", "turn it round into a LEFT JOIN")
        if source.side == "FULL":
            full = True
        elif source.side == "LEFT" or source.kind in _FILTERING_KINDS:
            optional.add(source.alias)
    if full and len(scope.sources) > 2:
        raise NotProvableError(
            "a FULL JOIN among several joins", "make the FULL JOIN of two tables a table, and join that"
        )
    known = frozenset(optional)
    equal = (pair for pair in _equalities(scope, known, full) if kinds.same(scope, pair[0].tree, pair[1].tree))
    return Joins(scope.sources, known, full, tuple(equal))


def _classes(equalities: Iterable[tuple[Piece, Piece]]) -> list[tuple[Piece, ...]]:
    """Groups of expressions that these equalities make equal."""
    classes: list[list[Piece]] = []
    for left, right in equalities:
        touching = [m for m in classes if any(one.tree in (left.tree, right.tree) for one in m)]
        merged = {piece.tree: piece for piece in [left, right, *(one for members in touching for one in members)]}
        classes = [members for members in classes if members not in touching] + [list(merged.values())]
    return [tuple(members) for members in classes]


def _equalities(scope: Scope, optional: frozenset[str], full: bool) -> Iterator[tuple[Piece, Piece]]:
    for source in scope.sources[1:]:
        for condition, left, right in _pairs(source.on):
            # The condition of an outer join speaks of its own table: where that has no match, nothing else is known.
            strict = source.side == "" and source.kind not in _FILTERING_KINDS
            if not strict and source.alias not in left.aliases | right.aliases:
                continue
            absent = optional - {source.alias}
            if all(_strict(condition, side, absent) for side in (left, right)):
                yield left, right
    if full:
        return
    for _, left, right in _pairs(scope.where):
        # WHERE sees rows after an outer join has filled in nulls, so it says nothing about optional sources.
        if not (left.aliases | right.aliases) & optional:
            yield left, right


def _strict(condition: Condition, side: Piece, absent: frozenset[str]) -> bool:
    """A side that may be filled in with nulls must make the condition fail then, not match by chance."""
    return not side.aliases & absent or (not condition.null_safe and side.plain)


def _pairs(conditions: tuple[Condition, ...]) -> Iterator[tuple[Condition, Piece, Piece]]:
    for condition in conditions:
        if condition.sides is not None:
            left, right = condition.sides
            if left.aliases != right.aliases and movable(left) and movable(right):
                yield condition, left, right
