"""Values of any type in a form that rows can be grouped by, compared by and told apart by.

Variants cannot be grouped by at all. Maps can, but Spark 4.1 sorts them first, and compiled code then loses the nulls
among their values: {'a': 1, 'b': null} becomes {'a': 1, 'b': 1}.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql.functions import array_sort, map_entries, struct, to_json, transform, when, xxhash64
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

# JSON with every digit of a time and the nulls of maps, both of which Spark leaves out by itself.
EXACT_JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}


def content(value: Column) -> Column:
    """A number for all that a value holds: rows that differ in anything have different ones."""
    return xxhash64(to_json(value, EXACT_JSON))


def same_values(one: Column, other: Column, kind: DataType) -> Column:
    """Whether two values are equal, nulls too; maps alone cannot be asked."""
    return groupable(one, kind).eqNullSafe(groupable(other, kind))


def groupable(value: Column, kind: DataType) -> Column:
    """The value in a form that rows can be grouped by and sorted by, equal for equal values only.

    A map is its entries in the order of their keys, a variant its JSON.
    """
    if not ungroupable(kind):
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
    return to_json(value, EXACT_JSON)


def ungroupable(kind: DataType) -> bool:
    return has_maps(kind, VariantType)


def has_maps(kind: DataType, *others: type[DataType]) -> bool:
    """Whether a value of the type is or holds a map, or a value of one of the other types."""
    if isinstance(kind, ArrayType):
        return has_maps(kind.elementType, *others)
    if isinstance(kind, StructType):
        return any(has_maps(one.dataType, *others) for one in kind)
    return isinstance(kind, (MapType, *others))
