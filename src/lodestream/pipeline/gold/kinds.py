"""Whether two expressions have comparable types, so that an equal value on one side is the same key on the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from lodestream.pipeline.gold.plan import InputInfo
from lodestream.pipeline.gold.query import sources
from lodestream.pipeline.gold.types import SqlType, parse_type, type_of

_DATES = (exp.TsOrDsToDate, exp.Date, exp.CurrentDate)


@dataclass(frozen=True, slots=True)
class Kinds:
    infos: Mapping[str, InputInfo]

    def same(self, select: exp.Select, left: exp.Expr, right: exp.Expr) -> bool:
        """'01' = 1 is true in SQL, but '01' is another key than 1: only types that compare by value count."""
        one, other = self.kind(select, left), self.kind(select, right)
        return one is not None and one == other

    def kind(self, select: exp.Select, expression: exp.Expr) -> str | None:
        if isinstance(expression, exp.Column):
            return self._column(select, expression)
        if isinstance(expression, exp.Cast):
            return _canonical(expression.to.sql("spark"))
        if isinstance(expression, _DATES):
            return "date"
        kind = type_of(expression, lambda column: self._type(select, column))
        return _canonical(str(kind)) if kind else None

    def _type(self, select: exp.Select, column: exp.Column) -> SqlType | None:
        kind = self._column(select, column)
        return parse_type(kind) if kind else None

    def _column(self, select: exp.Select, column: exp.Column) -> str | None:
        for source in sources(select):
            if source.alias != column.table:
                continue
            if isinstance(source.node, exp.Subquery) and isinstance(source.node.this, exp.Select):
                inner = source.node.this
                items = {item.alias_or_name: item.unalias() for item in inner.expressions}
                return self.kind(inner, items[column.name]) if column.name in items else None
            for name, info in self.infos.items():
                if name.lower() == source.table:
                    declared = {c.lower(): kind for c, kind in info.columns.items()}.get(column.name)
                    return _canonical(declared) if declared else None
        return None


def _canonical(declared: str) -> str:
    """Whole numbers and decimals of any width compare by value, so they count as one kind."""
    kind = parse_type(declared)
    if kind is not None and (kind.integral or kind.decimal):
        return "number"
    return declared.lower().replace(" ", "")
