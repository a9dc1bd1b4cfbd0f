"""Values of any type made comparable: to match but for rounding, and to show."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql.functions import (
    abs as magnitude,
)
from pyspark.sql.functions import (
    base64,
    coalesce,
    forall,
    greatest,
    lit,
    size,
    struct,
    to_json,
    transform,
    zip_with,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    FloatType,
    StructType,
)

from lodestream.tables.groupable import EXACT_JSON

# How far two floating-point values may lie apart, as a share of the larger one (of 1, when both are smaller): a sum
# depends on the order in which its rows were added.
DOUBLE_TOLERANCE = 1e-9
FLOAT_TOLERANCE = 1e-6


def has_floats(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return has_floats(kind.elementType)
    if isinstance(kind, StructType):
        return any(has_floats(one.dataType) for one in kind)
    return isinstance(kind, FloatType | DoubleType)


def without_floats(value: Column, kind: DataType) -> Column:
    """What must be equal exactly: the value, of a floating-point number only whether there is one."""
    if not has_floats(kind):
        return value
    if isinstance(kind, ArrayType):
        inner = kind.elementType
        return transform(value, lambda one: without_floats(one, inner))
    if isinstance(kind, StructType):
        parts = [without_floats(value[one.name], one.dataType).alias(f"_{n}") for n, one in enumerate(kind)]
        return struct(value.isNull().alias("_"), *parts)
    return value.isNull()


def same(one: Column, other: Column, kind: DataType) -> Column:
    """Whether two values are equal, floating-point numbers up to the order of adding. Never null."""
    if not has_floats(kind):
        return one.eqNullSafe(other)
    if isinstance(kind, ArrayType):
        inner = kind.elementType
        paired = zip_with(one, other, lambda left, right: same(left, right, inner))
        alike = (size(one) == size(other)) & forall(paired, lambda each: each)
        return (one.isNull() & other.isNull()) | coalesce(alike, lit(False))
    if isinstance(kind, StructType):
        alike = one.isNull() == other.isNull()
        for part in kind:
            alike = alike & same(one[part.name], other[part.name], part.dataType)
        return alike
    share = FLOAT_TOLERANCE if isinstance(kind, FloatType) else DOUBLE_TOLERANCE
    left, right = one.cast("double"), other.cast("double")
    near = magnitude(left - right) <= lit(share) * greatest(lit(1.0), magnitude(left), magnitude(right))
    # Infinity minus infinity is no number, and an infinite tolerance would let everything pass.
    finite = (magnitude(left) < float("inf")) & (magnitude(right) < float("inf"))
    # Two zeros are equal to SQL, whatever their signs: as text they are not.
    alike = (left != 0) | (right != 0) | (one.cast("string") == other.cast("string"))
    return (one.eqNullSafe(other) | coalesce(finite & near, lit(False))) & coalesce(alike, lit(True))


def shown(value: Column, kind: DataType) -> Column:
    """The value as text."""
    if isinstance(kind, ArrayType | StructType):
        return to_json(value, EXACT_JSON)
    return base64(value) if isinstance(kind, BinaryType) else value.cast("string")
