"""Aggregates that are sums of their rows: what is kept per group, how a row changes it, how the answer is read off."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from lodestream.names import WEIGHT
from lodestream.pipeline.gold.averages import decimal_average, exact_average_possible, integral_average
from lodestream.pipeline.gold.kinds import Kinds
from lodestream.pipeline.gold.names import Names
from lodestream.pipeline.gold.parsing import call
from lodestream.pipeline.gold.pieces import Piece
from lodestream.pipeline.gold.plan import NotProvableError, StateColumn
from lodestream.pipeline.gold.scopes import Scope
from lodestream.pipeline.gold.types import BIGINT, SqlType, decimal_type, type_of

ROWS = StateColumn("n", "bigint", "rows in the group")
_COUNTED = "CAST(COALESCE(SUM(CASE WHEN {a} IS NULL THEN 0 ELSE {w} END), 0) AS BIGINT)"
_SUMMED = "CAST(COALESCE(SUM(CASE WHEN {w} > 0 THEN {a} ELSE -{a} END), 0) AS {t})"
_EITHER, _EACH = ("bool_or", "any", "some"), ("bool_and", "every")
_SUMS, _AVERAGES = ("sum",), ("avg", "mean")


@dataclass(slots=True)
class Measures:
    """Collects the state of all aggregates of one query; equal aggregates share it.

    `arguments` are computed once per row; `states` pairs each state column with its sum over weighted rows.
    """

    scope: Scope
    names: Names
    kinds: Kinds
    arguments: dict[str, str] = field(default_factory=dict)
    states: dict[StateColumn, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states[ROWS] = f"CAST(COALESCE(SUM({WEIGHT}), 0) AS BIGINT)"

    def answer(self, node: exp.Expr) -> str:
        """The expression over state columns that equals this aggregate, type and nulls included."""
        aggregate, condition = node, None
        if isinstance(node, exp.Filter):
            aggregate, condition = node.this, self._piece(node.expression.this).text
        name = call(aggregate)
        given = _arguments(aggregate)
        if name == "count":
            return self._count(aggregate, given, condition)
        if name == "count_if" and len(given) == 1:
            return self._counted("1", _both(condition, self._piece(given[0]).text))
        if name in (*_EITHER, *_EACH) and len(given) == 1:
            return self._logical(self._piece(given[0]).text, condition, either=name in _EITHER)
        if name in (*_SUMS, *_AVERAGES) and len(given) == 1 and not isinstance(given[0], exp.Distinct):
            return self._sum_or_average(given[0], condition, str(name))
        raise NotProvableError(
            f"{self._said(node)} is not a sum over its rows",
            "keep it in a table of its own, so that the rest can follow by delta",
        )

    def _count(self, node: exp.Expr, given: list[exp.Expr], condition: str | None) -> str:
        if any(isinstance(value, exp.Distinct) for value in given):
            raise NotProvableError(
                f"{self._said(node)} must know which values it has seen",
                "make a table of the distinct values (SELECT DISTINCT key, value), and count its rows",
            )
        real = [self._piece(value).text for value in given if not isinstance(value, (exp.Star, exp.Literal))]
        if not real and condition is None:
            return ROWS.name
        for value in real[1:]:
            condition = _both(condition, f"({value}) IS NOT NULL")
        return self._counted(real[0] if real else "1", condition)

    def _logical(self, value: str, condition: str | None, *, either: bool) -> str:
        known = self._counted(value, condition)
        true = self._counted("1", _both(condition, value))
        test = f"{true} > 0" if either else f"{true} = {known}"
        return f"CASE WHEN {known} = 0 THEN NULL ELSE {test} END"

    def _sum_or_average(self, node: exp.Expr, condition: str | None, name: str) -> str:
        value = self._piece(node)
        kind = self._exact_type(value, self._said(node), name)
        total, count = self._summed(value, kind, condition), self._counted(value.text, condition)
        if name in _SUMS:
            answer = f"CAST({total} AS BIGINT)" if kind == BIGINT else total
            return f"CASE WHEN {count} = 0 THEN NULL ELSE {answer} END"
        if kind.decimal:
            return decimal_average(total, count, kind)
        if kind == BIGINT:
            self.notes.append("avg over bigint: exact; Spark's own avg rounds once its sum passes 2^53")
        return integral_average(total, count)

    def _exact_type(self, value: Piece, said: str, name: str) -> SqlType:
        text = f"{name}({said})"
        kind = type_of(value.tree, lambda column: self.kinds.type(self.scope, column))
        cast = f"write {name}(cast({said} as decimal(18,6))) if 12 digits before and 6 after the point do"
        if kind is None:
            raise NotProvableError(f"the type of {text} is not known, so it may be inexact", f"of a number, {cast}")
        if kind.floating:
            raise NotProvableError(
                f"{text} adds floating-point numbers, which drift when rows are taken away again", cast
            )
        if not (kind.integral or kind.decimal):
            raise NotProvableError(f"{text} is not a sum of numbers")
        average = name in _AVERAGES
        if kind.precision > 28 or (average and kind.decimal and not exact_average_possible(kind)):
            raise NotProvableError(f"{text} is over {kind}, too wide to be kept exactly", cast)
        return kind

    def _summed(self, value: Piece, kind: SqlType, condition: str | None) -> str:
        held = _held(kind)
        inside = (
            value.text if kind.decimal else f"CAST({value.text} AS {'BIGINT' if held == BIGINT else 'DECIMAL(20,0)'})"
        )
        argument = self._argument(inside, condition)
        return self._state("s", str(held), _SUMMED.format(a=argument, w=WEIGHT, t=str(held).upper()), value.text)

    def _counted(self, value: str, condition: str | None) -> str:
        argument = self._argument(value, condition)
        return self._state("c", "bigint", _COUNTED.format(a=argument, w=WEIGHT), f"rows with {value}")

    def _argument(self, value: str, condition: str | None) -> str:
        text = value if condition is None else f"CASE WHEN ({condition}) THEN ({value}) END"
        return self.arguments.setdefault(text, f"a{len(self.arguments) + 1}")

    def _state(self, prefix: str, kind: str, expression: str, meaning: str) -> str:
        for column, known in self.states.items():
            if known == expression:
                return column.name
        column = StateColumn(f"{prefix}{len(self.states)}", kind, meaning)
        self.states[column] = expression
        return column.name

    def _piece(self, node: exp.Expr) -> Piece:
        piece = self.names.piece(node, "items")
        if piece.tree.find(exp.Query) is not None:
            raise NotProvableError("an aggregate reads a subquery")
        return piece

    def _said(self, node: exp.Expr) -> str:
        return " ".join(self.names.written(node).lower().split())


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    first = [node.this] if isinstance(node.this, exp.Expr) else []
    return [*first, *(value for value in node.expressions if isinstance(value, exp.Expr))]


def _held(kind: SqlType) -> SqlType:
    """The type a running sum is kept in: Spark's for decimals; wide enough for any order of adding for bigint."""
    if kind.decimal:
        return decimal_type(kind.precision + 10, kind.scale)
    return decimal_type(30, 0) if kind == BIGINT else BIGINT


def _both(left: str | None, right: str) -> str:
    return f"({right})" if left is None else f"({left}) AND ({right})"
