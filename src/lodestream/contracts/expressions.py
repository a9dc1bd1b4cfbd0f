"""Rule expressions, read with sqlglot so that a typing error is found before Spark starts."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

import sqlglot
from sqlglot import exp

from lodestream.contracts.document import Problem, nearest
from lodestream.names import CARRIED

# `a > > 0` is read as a shift of bits.
_NUMBERS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.BitwiseRightShift, exp.BitwiseLeftShift)


def problem_of(expression: str, known: Collection[str]) -> Problem | None:
    """What keeps an expression from being a condition on one row, or None."""
    try:
        trees = sqlglot.parse(expression, dialect="spark")
    except sqlglot.errors.SqlglotError as failure:
        return Problem(f"{expression} is not Spark SQL: {_first_line(failure)}")
    tree = trees[0] if len(trees) == 1 else None
    if tree is None or not isinstance(tree, exp.Condition) or isinstance(tree, exp.Alias | exp.Tuple):
        return Problem(f"{expression} is not one condition", fix="write one expression, such as fare_amount >= 0")
    if isinstance(tree, _NUMBERS):
        return Problem(f"{expression} is a number, not a condition", fix="compare it: fare_amount >= 0")
    if any(True for _ in tree.find_all(exp.Query)):
        return Problem(f"{expression} reads other rows", fix="a rule sees one row: compare columns and constants")
    if any(True for _ in tree.find_all(exp.AggFunc, exp.Window)):
        return Problem(f"{expression} aggregates", fix="a rule sees one row: put totals into a Gold table")
    return _unknown_column(tree, known)


@cache
def columns_in(expression: str) -> frozenset[str]:
    """The columns that an expression over one row names, in lower case."""
    tree = sqlglot.parse_one(expression, dialect="spark")
    return frozenset(column.parts[0].name.lower() for column in tree.find_all(exp.Column))


def _unknown_column(tree: exp.Condition, known: Collection[str]) -> Problem | None:
    names = {name.lower() for name in known} | {CARRIED}
    bound = {arg.name.lower() for found in tree.find_all(exp.Lambda) for arg in found.expressions}
    for column in tree.find_all(exp.Column):
        first = column.parts[0].name
        if first.lower() not in names | bound:
            return Problem(f"{first} is no field of the contract", fix=nearest(first, known))
    return None


def _first_line(failure: Exception) -> str:
    return re.sub(r"\x1b\[\d+m", "", str(failure)).splitlines()[0]
