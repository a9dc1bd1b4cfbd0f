"""Negative zero: to SQL it equals zero, so grouping takes both for one value and gives 0.0 for either.

Whoever compares whole rows by grouping them groups by the sign as well, and takes the value itself from a row.
"""

from __future__ import annotations

_FLOATING = ("float", "double")


def has_zeros(kind: str) -> bool:
    """Whether values of this type, as Spark writes it, are or hold floating-point numbers."""
    return any(word in kind.lower() for word in _FLOATING)


def zero_sign(column: str, kind: str) -> str:
    """SQL over a column that has zeros: differs for rows that differ in the sign of a zero alone."""
    # One over negative zero is minus infinity; a division would be refused. Inside other values the text shows it.
    return f"power({column}, -1) < 0" if kind.lower() in _FLOATING else f"CAST({column} AS STRING)"
