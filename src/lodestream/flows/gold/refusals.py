"""Rows and types that are refused: by Spark while it computes, and by Iceberg, which cannot keep every type."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    NullType,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from lodestream.errors import DeclarationError, LodeError
from lodestream.pipeline.gold.plan import NEGATIVE
from lodestream.tables.jvm import causes
from lodestream.tables.stored import unstorable

# What Spark raises for a value: a cast, a division, an index, a subquery with two rows, raise_error().
_REFUSALS = tuple(
    f"org.apache.spark.Spark{kind}Exception"
    for kind in (
        "Arithmetic",
        "ArrayIndexOutOfBounds",
        "DateTime",
        "IllegalArgument",
        "NoSuchElement",
        "NumberFormat",
        "Runtime",
        "UnsupportedOperation",
    )
)
_INTERVALS = (CalendarIntervalType, DayTimeIntervalType, YearMonthIntervalType)


def refuses_a_value(error: Exception) -> bool:
    """Whether an expression of the query met a value that it has no answer for."""
    if isinstance(error, LodeError):
        return False
    chain = causes(error)
    return any(name in _REFUSALS for name, _ in chain) and not any(NEGATIVE in message for _, message in chain)


def refuse_types(table: str, schema: StructType, properties: Mapping[str, str]) -> None:
    """Raise when a column has a type that no table can keep."""
    found = unstorable(schema, int(properties.get("format-version", "2")))
    if found is None:
        return
    path, kind = found
    name = "void (NULL without a type)" if isinstance(kind, NullType) else kind.simpleString()
    raise DeclarationError(
        f"{table}: column {path} is of type {name}, which no table can keep",
        why="Iceberg has no such type",
        fix=_instead(path, kind),
    )


def _instead(path: str, kind: DataType) -> str:
    column, _, field = path.partition(".")
    if field:
        return f"give the field a type that a table can keep: CAST({path} AS STRING)"
    if isinstance(kind, NullType):
        return f"say which type is meant: CAST(NULL AS STRING) AS {column}"
    if isinstance(kind, VariantType):
        return f'write to_json({column}) AS {column}, or declare properties={{"format-version": "3"}}'
    text = f"write CAST({column} AS STRING) AS {column}"
    return f"{text}, or count a unit of it: timestampdiff(SECOND, a, b)" if isinstance(kind, _INTERVALS) else text
