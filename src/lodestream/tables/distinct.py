"""Rows counted by all that they hold, to the sign of a zero."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, expr, first

from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.zeros import has_zeros, zero_sign
from lodestream.tables.groupable import groupable, ungroupable


def counted(rows: DataFrame, columns: Sequence[str], *counts: Column) -> DataFrame:
    """Each distinct row of these columns once, as it is stored, and the counts over its copies."""
    types = {field.name: field.dataType for field in rows.schema if field.name in columns}
    kinds = {name: kind.simpleString() for name, kind in types.items()}
    signed = [name for name in columns if has_zeros(kinds[name])]
    signs = [expr(zero_sign(quoted(name), kinds[name])).alias(f"_lode_z{n}") for n, name in enumerate(signed)]
    # Of these the value is taken from a row: what they are grouped by is not quite it.
    bent = [name for name in columns if name in signed or ungroupable(types[name])]
    values = [first(col(quoted(name))).alias(f"_lode_v{n}") for n, name in enumerate(bent)]
    grouped = [groupable(col(quoted(name)), types[name]).alias(name) for name in columns]
    found = rows.groupBy(*grouped, *signs).agg(*counts, *values)
    kept = found.columns[len(columns) + len(signs) : len(found.columns) - len(values)]
    shown = [col(f"_lode_v{bent.index(name)}").alias(name) if name in bent else col(quoted(name)) for name in columns]
    return found.select(*shown, *map(col, kept))
