"""Whether two expressions have comparable types, so that an equal value on one side is the same key on the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from lodestream.pipeline.gold.functions import called_in
from lodestream.pipeline.gold.plan import InputInfo
from lodestream.pipeline.gold.scopes import Scope
from lodestream.pipeline.gold.types import INTEGRAL_DIGITS, MAX_PRECISION, SqlType, parse_type, type_of

_NUMBER = "number"
_DATES = frozenset(["to_date", "date", "last_day", "next_day", "make_date", "date_add", "date_sub"])


@dataclass(frozen=True, slots=True)
class Kinds:
    infos: Mapping[str, InputInfo]

    def same(self, scope: Scope, left: exp.Expr, right: exp.Expr) -> bool:
        """'01' = 1 is true in SQL, but '01' is another key than 1: only types that compare by value count."""
        one, other = self.kind(scope, left), self.kind(scope, right)
        if one is None or one != other:
            return False
        return one != _NUMBER or _by_value(*(type_of(tree, partial(self.type, scope)) for tree in (left, right)))

    def kind(self, scope: Scope, tree: exp.Expr) -> str | None:
        if isinstance(tree, exp.Column):
            declared = self.declared(scope, tree)
            return _canonical(declared) if declared else None
        if isinstance(tree, exp.Cast):
            return _canonical(tree.to.sql("spark"))
        if isinstance(tree, exp.Func) and len(called_in(tree)) == 1 and not _DATES.isdisjoint(called_in(tree)):
            return "date"
        kind = type_of(tree, lambda column: self.type(scope, column))
        return _canonical(str(kind)) if kind else None

    def united(self, scope: Scope, tree: exp.Expr) -> str | None:
        """The kind of a value below UNION, which rounds decimals to a type that both fit into."""
        kind = type_of(tree, lambda column: self.type(scope, column))
        if kind is not None and not kind.integral:
            return str(kind)
        return self.kind(scope, tree)

    def type(self, scope: Scope, column: exp.Column) -> SqlType | None:
        declared = self.declared(scope, column)
        return parse_type(declared) if declared else None

    def declared(self, scope: Scope, column: exp.Column) -> str | None:
        """The type of a column, through subqueries of one branch down to the table."""
        for source in scope.sources:
            if source.alias != column.table:
                continue
            if source.table is not None:
                info = next(info for name, info in self.infos.items() if name.lower() == source.table)
                return {name.lower(): kind for name, kind in info.columns.items()}.get(str(column.name))
            if len(source.branches) == 1:
                return self._below(source.branches[0], str(column.name))
        return None

    def _below(self, scope: Scope, name: str) -> str | None:
        item = next((item for item in scope.items if item.name.lower() == name), None)
        if item is None:
            return None
        if isinstance(item.piece.tree, exp.Column):
            return self.declared(scope, item.piece.tree)
        kind = type_of(item.piece.tree, lambda column: self.type(scope, column))
        return str(kind) if kind else None


def _by_value(one: SqlType | None, other: SqlType | None) -> bool:
    """Spark compares decimals in a type that both fit into; without such a type it rounds, and 3.0000000001 = 3."""
    if one is None or other is None:
        return False
    scale = max(one.scale, other.scale)
    whole = max(INTEGRAL_DIGITS.get(kind.name, kind.precision - kind.scale) for kind in (one, other))
    return whole + scale <= MAX_PRECISION


def _canonical(declared: str) -> str:
    """Whole numbers and decimals of any width compare by value, so they count as one kind."""
    kind = parse_type(declared)
    if kind is not None and (kind.integral or kind.decimal):
        return _NUMBER
    return declared.lower().replace(" ", "")
