"""What the joins of one SELECT say: which sources may be missing, which expressions are equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from lodestream.pipeline.gold.kinds import Kinds
from lodestream.pipeline.gold.plan import NotProvableError
from lodestream.pipeline.gold.query import Source, sources

_FILTERING_KINDS = ("SEMI", "ANTI")


@dataclass(frozen=True, slots=True)
class Joins:
    """The sources of a SELECT and the equalities between them.

    `optional` are the sources that can be absent from an output row: the right side of LEFT, SEMI and ANTI joins,
    both sides of FULL.
    """

    sources: tuple[Source, ...]
    optional: frozenset[str]
    full: bool
    classes: tuple[tuple[exp.Expr, ...], ...]

    def source(self, alias: str) -> Source:
        return next(source for source in self.sources if source.alias == alias)

    def over(self, alias: str, expression: exp.Expr) -> exp.Expr | None:
        """An expression over this source alone that has the same value in every output row it takes part in."""
        if self.full:
            return self._merged(alias, expression)
        if aliases(expression) == {alias}:
            return None if alias in self.optional else expression
        if aliases(expression) & self.optional:
            return None
        return self._equal(alias, expression)

    def _equal(self, alias: str, expression: exp.Expr) -> exp.Expr | None:
        for members in self.classes:
            if expression in members:
                return next((member for member in members if aliases(member) == {alias}), None)
        return None

    def _merged(self, alias: str, expression: exp.Expr) -> exp.Expr | None:
        """FULL JOIN: only coalesce(a.k, b.k) with a.k = b.k has a value that each side can tell by itself."""
        if not isinstance(expression, exp.Coalesce):
            return None
        parts = [expression.this, *expression.expressions]
        covered = {part.table for part in parts if isinstance(part, exp.Column)}
        if len(covered) < len(parts) or covered != {source.alias for source in self.sources}:
            return None
        same = [members for members in self.classes if all(part in members for part in parts)]
        return self._equal(alias, parts[0]) if same else None


def read_joins(select: exp.Select, kinds: Kinds) -> Joins:
    found = sources(select)
    optional: set[str] = set()
    full = False
    for source in found[1:]:
        join = source.join
        if join is None or join.args.get("method"):
            raise NotProvableError("a NATURAL or ASOF join hides its condition", "write the join with ON")
        if join.side == "RIGHT":
            raise NotProvableError("a RIGHT JOIN keeps rows of its second table", "turn it round into a LEFT JOIN")
        if join.side == "FULL":
            full = True
        if join.side == "LEFT" or join.kind in _FILTERING_KINDS:
            optional.add(source.alias)
    if full and len(found) > 2:
        raise NotProvableError("a FULL JOIN among several joins", "join two tables at a time")
    return Joins(found, frozenset(optional), full, tuple(_classes(select, found, frozenset(optional), kinds)))


def aliases(expression: exp.Expr) -> set[str]:
    return {str(column.table) for column in expression.find_all(exp.Column)}


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    if condition is None:
        return
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        yield from conjuncts(inner.left)
        yield from conjuncts(inner.right)
    else:
        yield inner


def _classes(
    select: exp.Select, found: tuple[Source, ...], optional: frozenset[str], kinds: Kinds
) -> list[tuple[exp.Expr, ...]]:
    """Groups of expressions that equalities make equal wherever all their sources are present."""
    classes: list[list[exp.Expr]] = []
    for left, right in _equalities(select, found, optional):
        if not kinds.same(select, left, right):
            continue
        touching = [members for members in classes if left in members or right in members]
        merged = list(dict.fromkeys([left, right, *(member for members in touching for member in members)]))
        classes = [members for members in classes if members not in touching] + [merged]
    return [tuple(members) for members in classes]


def _equalities(
    select: exp.Select, found: tuple[Source, ...], optional: frozenset[str]
) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    for source in found[1:]:
        condition = source.join.args.get("on") if source.join is not None else None
        for part, left, right in _pairs(condition):
            absent = optional - {source.alias}
            if all(_strict(part, side, absent) for side in (left, right)):
                yield left, right
    where = select.args.get("where")
    for _, left, right in _pairs(where.this if where else None):
        # WHERE sees rows after an outer join has filled in nulls, so it says nothing about optional sources.
        if not (aliases(left) | aliases(right)) & optional:
            yield left, right


def _strict(part: exp.Expr, side: exp.Expr, absent: frozenset[str]) -> bool:
    """A side that may be filled in with nulls must make the condition fail then, not match by chance."""
    return not aliases(side) & absent or (isinstance(part, exp.EQ) and isinstance(side, exp.Column))


def _pairs(condition: exp.Expr | None) -> Iterator[tuple[exp.Expr, exp.Expr, exp.Expr]]:
    for part in conjuncts(condition):
        if isinstance(part, (exp.EQ, exp.NullSafeEQ)):
            left, right = part.left.unnest(), part.right.unnest()
            if len(aliases(left)) == len(aliases(right)) == 1 and aliases(left) != aliases(right):
                yield part, left, right
