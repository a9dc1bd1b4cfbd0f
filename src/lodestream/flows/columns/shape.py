"""Column lists as DDL, and the partition fields that a filter can use."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql.types import StructType

from lodestream.pipeline import Partition, parse_partition
from lodestream.tables.evolving import spelt

_TIME = ("years", "months", "days", "hours")


def ddl_of(schema: StructType, *, without: Sequence[str] = (), required: Collection[str] = ()) -> str:
    kept = [(f"`{f.name.replace('`', '``')}` {spelt(f.dataType)}", f.name) for f in schema]
    return ", ".join(f"{ddl} NOT NULL" if name in required else ddl for ddl, name in kept if name not in without)


def partition_columns(partition_by: Sequence[str], columns: Sequence[str]) -> list[Partition]:
    """The partition fields that a filter on the rows' own values can prune."""
    parsed = [parse_partition(text) for text in partition_by]
    return [one for one in parsed if one.column in columns and one.transform in (*_TIME, "identity")]
