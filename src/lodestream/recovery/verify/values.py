"""Values of any type made comparable: to group by, to match but for rounding, and to show."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql.functions import (
    abs as magnitude,
)
from pyspark.sql.functions import (
    array_sort,
    base64,
    coalesce,
    forall,
    greatest,
    lit,
    map_entries,
    size,
    struct,
    to_json,
    transform,
    when,
    zip_with,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StructType,
    VariantType,
)

# How far two floating-point values may lie apart, as a share of the larger one (of 1, when both are smaller): a sum
# depends on the order in which its rows were added.
DOUBLE_TOLERANCE = 1e-9
FLOAT_TOLERANCE = 1e-6


def groupable(value: Column, kind: DataType) -> Column:
    """The value in a form that rows can be grouped by and sorted by, equal for equal values only.

    A map is its entries in the order of their keys, a variant its JSON.
    """
    if not _ungroupable(kind):
        return value
    if isinstance(kind, MapType):
        keys, values = kind.keyType, kind.valueType
        entries = transform(
            map_entries(value),
            lambda one: struct(
                groupable(one["key"], keys).alias("key"),
                groupable(one["value"], values).alias("value"),
            ),
        )
        return array_sort(entries)
    if isinstance(kind, ArrayType):
        inner = kind.elementType
        return transform(value, lambda one: groupable(one, inner))
    if isinstance(kind, StructType):
        fields = [groupable(value[one.name], one.dataType).alias(one.name) for one in kind]
        return when(value.isNotNull(), struct(*fields))
    return to_json(value)


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
        return to_json(value, {"ignoreNullFields": "false"})
    return base64(value) if isinstance(kind, BinaryType) else value.cast("string")


def _ungroupable(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _ungroupable(kind.elementType)
    if isinstance(kind, StructType):
        return any(_ungroupable(one.dataType) for one in kind)
    return isinstance(kind, MapType | VariantType)
