"""Column lists as DDL, and the partition fields that a filter can use."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import StructType

from lodestream.pipeline import Partition, parse_partition

_TIME = ("years", "months", "days", "hours")


def ddl_of(schema: StructType, *, without: Sequence[str] = ()) -> str:
    kept = (field for field in schema if field.name not in without)
    return ", ".join(f"`{field.name.replace('`', '``')}` {field.dataType.simpleString()}" for field in kept)


def partition_columns(partition_by: Sequence[str], columns: Sequence[str]) -> list[Partition]:
    """The partition fields that a filter on the rows' own values can prune."""
    parsed = [parse_partition(text) for text in partition_by]
    return [one for one in parsed if one.column in columns and one.transform in (*_TIME, "identity")]
