"""The Spark types of expressions, as far as sums and averages need them.

An unknown type is None, and what is unknown is never summed by delta. The decimal rules are Spark's own
(DecimalPrecision, `spark.sql.decimalOperations.allowPrecisionLoss` = true).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

MAX_PRECISION = 38
INTEGRAL_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_NAMES = {
    exp.DataType.Type.TINYINT: "tinyint",
    exp.DataType.Type.SMALLINT: "smallint",
    exp.DataType.Type.INT: "int",
    exp.DataType.Type.BIGINT: "bigint",
    exp.DataType.Type.FLOAT: "float",
    exp.DataType.Type.DOUBLE: "double",
    exp.DataType.Type.BOOLEAN: "boolean",
}
_SAME_AS_ARGUMENT = (exp.Paren, exp.Neg, exp.Abs)
_INTS = (exp.Year, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.Second, exp.DayOfWeek, exp.Length, exp.DateDiff)
_BOOLEANS = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)


@dataclass(frozen=True, slots=True)
class SqlType:
    name: str
    precision: int = 0
    scale: int = 0

    @property
    def integral(self) -> bool:
        return self.name in INTEGRAL_DIGITS

    @property
    def decimal(self) -> bool:
        return self.name == "decimal"

    @property
    def floating(self) -> bool:
        return self.name in ("float", "double")

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.decimal else self.name


ColumnType = Callable[[exp.Column], "SqlType | None"]
INT, BIGINT, DOUBLE, BOOLEAN = SqlType("int"), SqlType("bigint"), SqlType("double"), SqlType("boolean")


def decimal_type(precision: int, scale: int) -> SqlType:
    return SqlType("decimal", precision, scale)


def parse_type(text: str | exp.DataType | None) -> SqlType | None:
    """A Spark type as written in a schema; types that no sum can use come back as None."""
    return None if text is None else _named(text) if isinstance(text, str) else _sql_type(text)


@lru_cache(maxsize=1024)
def _named(text: str) -> SqlType | None:
    return _sql_type(text)


def _sql_type(text: str | exp.DataType) -> SqlType | None:
    try:
        kind = exp.DataType.build(text, dialect="spark")
    except SqlglotError:
        return None
    if kind.this == exp.DataType.Type.DECIMAL:
        sizes = [int(size.name) for size in kind.expressions]
        return decimal_type(*(sizes + [10, 0][len(sizes) :]))
    name = _NAMES.get(kind.this)
    return SqlType(name) if name else None


def type_of(node: exp.Expr, column: ColumnType) -> SqlType | None:
    """The type Spark gives this expression, or None when it is not known for certain."""
    if isinstance(node, exp.Column):
        return column(node)
    if isinstance(node, exp.Literal):
        return _literal(node)
    if isinstance(node, exp.Cast):
        return parse_type(node.to)
    if isinstance(node, _SAME_AS_ARGUMENT):
        return type_of(node.this, column)
    if isinstance(node, (exp.Case, exp.If, exp.Coalesce, exp.Nullif)):
        return _widest([type_of(branch, column) for branch in _branches(node)])
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)):
        return _arithmetic(node, type_of(node.left, column), type_of(node.right, column))
    if isinstance(node, exp.Round):
        return _rounded(type_of(node.this, column), node.args.get("decimals"))
    if isinstance(node, _BOOLEANS):
        return BOOLEAN
    return INT if isinstance(node, _INTS) else None


def _literal(node: exp.Literal) -> SqlType | None:
    text: str = node.name
    if node.is_string or not text.replace(".", "", 1).isdigit():
        return None
    if "." not in text:
        value = int(text)
        return INT if value < 2**31 else BIGINT if value < 2**63 else None
    whole, fraction = text.split(".")
    digits = len((whole + fraction).lstrip("0")) or 1
    return decimal_type(max(digits, len(fraction)), len(fraction))


def _branches(node: exp.Expr) -> list[exp.Expr]:
    """The values a conditional can have; NULL fits every type, so it is left out."""
    if isinstance(node, exp.Case):
        found = [branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default")]
    elif isinstance(node, exp.If):
        found = [node.args["true"], node.args.get("false")]
    elif isinstance(node, exp.Coalesce):
        found = [node.this, *node.expressions]
    else:
        found = [node.this]
    return [value for value in found if value is not None and not isinstance(value, exp.Null)]


def _widest(types: list[SqlType | None]) -> SqlType | None:
    known = [kind for kind in types if kind is not None]
    if len(known) < len(types) or not known:
        return None
    if all(kind == known[0] for kind in known):
        return known[0]
    if not all(kind.integral or kind.decimal for kind in known):
        return DOUBLE if all(kind.integral or kind.decimal or kind.floating for kind in known) else None
    if all(kind.integral for kind in known):
        return max(known, key=lambda kind: INTEGRAL_DIGITS[kind.name])
    decimals = [_as_decimal(kind) for kind in known]
    scale = max(kind.scale for kind in decimals)
    digits = max(kind.precision - kind.scale for kind in decimals)
    # Beyond 38 digits Spark's choice depends on its version: treat it as unknown.
    return decimal_type(digits + scale, scale) if digits + scale <= MAX_PRECISION else None


def _as_decimal(kind: SqlType, node: exp.Expr | None = None) -> SqlType:
    if kind.decimal:
        return kind
    if isinstance(node, exp.Literal):
        return decimal_type(len(str(int(node.name))), 0)
    return decimal_type(INTEGRAL_DIGITS[kind.name], 0)


def _arithmetic(node: Any, left: SqlType | None, right: SqlType | None) -> SqlType | None:
    if left is None or right is None or BOOLEAN in (left, right):
        return None
    if left.floating or right.floating:
        return DOUBLE
    if left.integral and right.integral:
        if isinstance(node, exp.Div):
            return DOUBLE
        return BIGINT if isinstance(node, exp.IntDiv) else _widest([left, right])
    if isinstance(node, exp.IntDiv):
        return BIGINT
    return _decimal_result(node, _as_decimal(left, node.left), _as_decimal(right, node.right))


def _decimal_result(node: exp.Expr, left: SqlType, right: SqlType) -> SqlType:
    whole = max(left.precision - left.scale, right.precision - right.scale)
    scale = max(left.scale, right.scale)
    if isinstance(node, exp.Mul):
        return _bounded(left.precision + right.precision + 1, left.scale + right.scale)
    if isinstance(node, exp.Div):
        scale = max(6, left.scale + right.precision + 1)
        return _bounded(left.precision - left.scale + right.scale + scale, scale)
    if isinstance(node, exp.Mod):
        return _bounded(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)
    return _bounded(whole + scale + 1, scale)


def _bounded(precision: int, scale: int) -> SqlType:
    if precision <= MAX_PRECISION:
        return decimal_type(precision, scale)
    whole = precision - scale
    return decimal_type(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, 6)))


def _rounded(kind: SqlType | None, places: exp.Expr | None) -> SqlType | None:
    if kind is None or not kind.decimal:
        return kind
    if places is not None and not (isinstance(places, exp.Literal) and places.name.isdigit()):
        return None
    scale = min(kind.scale, int(places.name) if places is not None else 0)
    return decimal_type(min(kind.precision - kind.scale + 1 + scale, MAX_PRECISION), scale)
