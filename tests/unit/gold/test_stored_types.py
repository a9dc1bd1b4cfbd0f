"""What a table keeps of a query's types, and what is said of those that it cannot keep. No JVM."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    IntegerType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from lodestream.errors import DeclarationError
from lodestream.flows.gold.refusals import refuse_types
from lodestream.tables.stored import as_stored


def _with(kind: DataType) -> StructType:
    return StructType([StructField("id", IntegerType()), StructField("c", kind)])


def test_small_numbers_and_collated_texts_are_kept_as_plain_ones() -> None:
    kind = StructType(
        [
            StructField("a", ArrayType(ShortType(), containsNull=False), nullable=False),
            StructField("m", MapType(StringType("UTF8_LCASE"), ByteType())),
            StructField("d", DecimalType(8, 2)),
        ]
    )
    assert as_stored(kind).simpleString() == "struct<a:array<int>,m:map<string,int>,d:decimal(8,2)>"


@pytest.mark.parametrize(
    ("kind", "what", "fix"),
    [
        (NullType(), "column c is of type void", "CAST(NULL AS STRING) AS c"),
        (DayTimeIntervalType(), "column c is of type interval day to second", "CAST(c AS STRING) AS c, or count"),
        (YearMonthIntervalType(), "column c is of type interval year to month", "CAST(c AS STRING) AS c"),
        (ArrayType(NullType()), "column c is of type void", "CAST(NULL AS STRING) AS c"),
        (StructType([StructField("f", NullType())]), "column c.f is of type void", "CAST(c.f AS STRING)"),
        (VariantType(), "column c is of type variant", "to_json(c) AS c"),
    ],
)
def test_a_type_that_no_table_can_keep_is_told_with_what_to_write_instead(kind: DataType, what: str, fix: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        refuse_types("gold.t", _with(kind), {})
    assert refused.value.what.startswith(f"gold.t: {what}")
    assert fix in (refused.value.fix or "")


def test_a_table_of_format_three_keeps_variants() -> None:
    refuse_types("gold.t", _with(VariantType()), {"format-version": "3"})
