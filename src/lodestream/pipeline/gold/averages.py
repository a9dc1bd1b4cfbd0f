"""The average of a group from its exact sum and count, digit by digit as Spark's `avg` gives it."""

from __future__ import annotations

from lodestream.pipeline.gold.types import MAX_PRECISION, SqlType

# A count of up to 15 digits leaves room for exact intermediate decimals.
_COUNT = "DECIMAL(15,0)"
_COUNT_DIGITS = 15


def average_type(kind: SqlType) -> SqlType:
    """Spark: avg(decimal(p,s)) is decimal(p+4,s+4)."""
    scale = min(kind.scale + 4, MAX_PRECISION)
    return SqlType("decimal", min(kind.precision + 4, MAX_PRECISION), scale)


def exact_average_possible(kind: SqlType) -> bool:
    """True when every intermediate decimal of `decimal_average` fits into 38 digits, so that nothing is rounded."""
    whole = max(kind.precision + 10 - kind.scale, _COUNT_DIGITS + 1)
    return whole + kind.scale + 7 <= MAX_PRECISION


def decimal_average(total: str, count: str, kind: SqlType) -> str:
    """sum / count, rounded half up to s+4 places, once.

    A plain division would round twice (first to the scale Spark chooses for the quotient), and a sum that lies
    just below a tie would come out one too high. So: add half a unit, cut off the remainder, divide exactly.
    """
    scale = kind.scale + 4
    whole = max(kind.precision + 10 - kind.scale, _COUNT_DIGITS + 1) + 1
    rows = f"CAST({count} AS {_COUNT})"
    half = f"CAST('0.{'0' * scale}5' AS DECIMAL({scale + 1},{scale + 1}))"
    unit = f"CAST('0.{'0' * (scale - 1)}1' AS DECIMAL({scale},{scale}))"
    raised = f"({total} + {rows} * (CASE WHEN {total} < 0 THEN -{half} ELSE {half} END))"
    cut = f"CAST({raised} - {raised} % ({rows} * {unit}) AS DECIMAL({whole + scale},{scale}))"
    return f"CASE WHEN {count} = 0 THEN NULL ELSE CAST({cut} / {rows} AS {average_type(kind)}) END"


def integral_average(total: str, count: str) -> str:
    """Spark sums whole numbers as doubles here, which is exact below 2^53; our sum is exact beyond that too."""
    return f"CASE WHEN {count} = 0 THEN NULL ELSE CAST({total} AS DOUBLE) / CAST({count} AS DOUBLE) END"
