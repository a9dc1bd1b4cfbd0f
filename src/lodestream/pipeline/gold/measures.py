"""Aggregates that are sums of their rows: what is kept per group, how a row changes it, how the answer is read off."""

from __future__ import annotations

from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp

from lodestream.pipeline.gold.averages import decimal_average, exact_average_possible, integral_average
from lodestream.pipeline.gold.plan import WEIGHT, NotProvableError, StateColumn
from lodestream.pipeline.gold.types import BIGINT, ColumnType, SqlType, decimal_type, type_of

ROWS = StateColumn("n", "bigint", "rows in the group")
_COUNTED = "CAST(COALESCE(SUM(CASE WHEN {a} IS NULL THEN 0 ELSE {w} END), 0) AS BIGINT)"
_SUMMED = "CAST(COALESCE(SUM(CASE WHEN {w} > 0 THEN {a} ELSE -{a} END), 0) AS {t})"


@dataclass(slots=True)
class Measures:
    """Collects the state of all aggregates of one query; equal aggregates share it.

    `arguments` are computed once per row; `states` pairs each state column with its sum over weighted rows.
    """

    column_type: ColumnType
    arguments: dict[str, str] = field(default_factory=dict)
    states: dict[StateColumn, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states[ROWS] = f"CAST(COALESCE(SUM({WEIGHT}), 0) AS BIGINT)"

    def answer(self, node: exp.Expr) -> exp.Expr:
        """The expression over state columns that equals this aggregate, type and nulls included."""
        aggregate, condition = (node.this, node.expression.this) if isinstance(node, exp.Filter) else (node, None)
        text = self._answer(aggregate, condition)
        return sqlglot.parse_one(text if text.isidentifier() else f"({text})", dialect="spark")

    def _answer(self, node: exp.Expr, condition: exp.Expr | None) -> str:
        if isinstance(node, exp.Count):
            return self._count(node, condition)
        if isinstance(node, exp.CountIf):
            return self._counted(exp.Literal.number(1), _both(condition, node.this))
        if isinstance(node, (exp.LogicalOr, exp.LogicalAnd)):
            return self._logical(node, condition)
        if isinstance(node, (exp.Sum, exp.Avg)) and not isinstance(node.this, exp.Distinct):
            return self._sum_or_average(node, condition)
        name = node.sql("spark").lower()
        raise NotProvableError(
            f"{name} is not a sum over its rows", "keep it in a table of its own, so that the rest can follow by delta"
        )

    def _count(self, node: exp.Count, condition: exp.Expr | None) -> str:
        values = [value for value in (node.this, *node.expressions) if value is not None]
        if any(isinstance(value, exp.Distinct) for value in values):
            raise NotProvableError(
                f"{node.sql('spark').lower()} must know which values it has seen",
                "count approximately in the reader, or keep the distinct count in a table of its own",
            )
        real = [value for value in values if not isinstance(value, (exp.Star, exp.Literal))]
        if not real and condition is None:
            return ROWS.name
        for value in real[1:]:
            condition = _both(condition, exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null())))
        return self._counted(real[0] if real else exp.Literal.number(1), condition)

    def _logical(self, node: exp.Expr, condition: exp.Expr | None) -> str:
        known = self._counted(node.this, condition)
        true = self._counted(exp.Literal.number(1), _both(condition, node.this))
        test = f"{true} > 0" if isinstance(node, exp.LogicalOr) else f"{true} = {known}"
        return f"CASE WHEN {known} = 0 THEN NULL ELSE {test} END"

    def _sum_or_average(self, node: exp.Expr, condition: exp.Expr | None) -> str:
        kind = self._exact_type(node)
        total, count = self._summed(node.this, kind, condition), self._counted(node.this, condition)
        if isinstance(node, exp.Sum):
            answer = f"CAST({total} AS BIGINT)" if kind == BIGINT else total
            return f"CASE WHEN {count} = 0 THEN NULL ELSE {answer} END"
        if kind.decimal:
            return decimal_average(total, count, kind)
        if kind == BIGINT:
            self.notes.append("avg over bigint: exact; Spark's own avg rounds once its sum passes 2^53")
        return integral_average(total, count)

    def _exact_type(self, node: exp.Expr) -> SqlType:
        text = node.sql("spark").lower()
        kind = type_of(node.this, self.column_type)
        cast = f"write {node.key}(cast({node.this.sql('spark').lower()} as decimal(18,6))) if six places are enough"
        if kind is None:
            raise NotProvableError(f"the type of {text} is not known, so it may be inexact", cast)
        if kind.floating:
            raise NotProvableError(
                f"{text} adds floating-point numbers, which drift when rows are taken away again", cast
            )
        if not (kind.integral or kind.decimal):
            raise NotProvableError(f"{text} is not a sum of numbers")
        if kind.precision > 28 or (isinstance(node, exp.Avg) and kind.decimal and not exact_average_possible(kind)):
            raise NotProvableError(f"{text} is over {kind}, too wide to be kept exactly", cast)
        return kind

    def _summed(self, value: exp.Expr, kind: SqlType, condition: exp.Expr | None) -> str:
        held = _held(kind)
        inside = value if kind.decimal else exp.cast(value.copy(), "bigint" if held == BIGINT else "decimal(20,0)")
        argument = self._argument(inside, condition)
        return self._state(
            "s", str(held), _SUMMED.format(a=argument, w=WEIGHT, t=str(held).upper()), f"sum of {value.sql('spark')}"
        )

    def _counted(self, value: exp.Expr, condition: exp.Expr | None) -> str:
        argument = self._argument(value, condition)
        return self._state("c", "bigint", _COUNTED.format(a=argument, w=WEIGHT), f"rows with {self._meaning(argument)}")

    def _argument(self, value: exp.Expr, condition: exp.Expr | None) -> str:
        text = value.sql("spark")
        if condition is not None:
            text = f"CASE WHEN {condition.sql('spark')} THEN {text} END"
        return self.arguments.setdefault(text, f"a{len(self.arguments) + 1}")

    def _state(self, prefix: str, kind: str, expression: str, meaning: str) -> str:
        for column, known in self.states.items():
            if known == expression:
                return column.name
        column = StateColumn(f"{prefix}{len(self.states)}", kind, meaning)
        self.states[column] = expression
        return column.name

    def _meaning(self, argument: str) -> str:
        return next(text for text, name in self.arguments.items() if name == argument)


def _held(kind: SqlType) -> SqlType:
    """The type a running sum is kept in: Spark's for decimals; wide enough for any order of adding for bigint."""
    if kind.decimal:
        return decimal_type(kind.precision + 10, kind.scale)
    return decimal_type(30, 0) if kind == BIGINT else BIGINT


def _both(left: exp.Expr | None, right: exp.Expr) -> exp.Expr:
    return right if left is None else exp.and_(left.copy(), right.copy())
