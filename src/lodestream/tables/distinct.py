"""Rows counted by all that they hold, to the sign of a zero."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, expr, first

from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.zeros import has_zeros, zero_sign


def counted(rows: DataFrame, columns: Sequence[str], *counts: Column) -> DataFrame:
    """Each distinct row of these columns once, as it is stored, and the counts over its copies."""
    kinds = {field.name: field.dataType.simpleString() for field in rows.schema if field.name in columns}
    signed = [name for name in columns if has_zeros(kinds[name])]
    signs = [expr(zero_sign(quoted(name), kinds[name])).alias(f"_lode_z{n}") for n, name in enumerate(signed)]
    values = [first(col(quoted(name))).alias(f"_lode_v{n}") for n, name in enumerate(signed)]
    found = rows.groupBy(*[col(quoted(name)) for name in columns], *signs).agg(*counts, *values)
    kept = found.columns[len(columns) + len(signs) : len(found.columns) - len(values)]
    shown = [
        col(f"_lode_v{signed.index(name)}").alias(name) if name in signed else col(quoted(name)) for name in columns
    ]
    return found.select(*shown, *map(col, kept))
