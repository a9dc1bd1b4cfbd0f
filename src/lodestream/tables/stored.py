"""Types as Iceberg keeps them: some it keeps as others, and some it cannot keep at all."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.functions import col
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
    VariantType,
)

_KEPT = (
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)
# From this format version on, a table can keep variants.
_VARIANTS = 3


def as_stored(kind: DataType) -> DataType:
    """The type that Iceberg keeps for a type that it does not have; nothing is said of nulls."""
    if isinstance(kind, ByteType | ShortType):
        return IntegerType()
    if isinstance(kind, CharType | VarcharType | StringType):
        return StringType()
    if isinstance(kind, ArrayType):
        return ArrayType(as_stored(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(as_stored(kind.keyType), as_stored(kind.valueType))
    if isinstance(kind, StructType):
        return StructType([StructField(one.name, as_stored(one.dataType)) for one in kind])
    return kind


def in_stored_types(rows: DataFrame) -> DataFrame:
    """The same rows, in the types that they are read back with."""
    kinds = [(field.dataType, as_stored(field.dataType)) for field in rows.schema]
    if all(made.simpleString() == kept.simpleString() for made, kept in kinds):
        return rows
    named = rows.toDF(*[f"c{n}" for n in range(len(kinds))])
    return named.select(*[col(f"c{n}").cast(kept).alias(rows.columns[n]) for n, (_, kept) in enumerate(kinds)])


def unstorable(schema: StructType, version: int = 2) -> tuple[str, DataType] | None:
    """The first column, or field of one, whose type no table of this format version can keep."""
    for field in schema:
        found = _unstorable(field.name, field.dataType, version)
        if found is not None:
            return found
    return None


def _unstorable(path: str, kind: DataType, version: int) -> tuple[str, DataType] | None:
    if isinstance(kind, ArrayType):
        return _unstorable(path, kind.elementType, version)
    if isinstance(kind, MapType):
        return _unstorable(path, kind.keyType, version) or _unstorable(path, kind.valueType, version)
    if isinstance(kind, StructType):
        inside = (_unstorable(f"{path}.{one.name}", one.dataType, version) for one in kind)
        return next((found for found in inside if found is not None), None)
    kept = isinstance(kind, _KEPT) or (isinstance(kind, VariantType) and version >= _VARIANTS)
    return None if kept else (path, kind)
