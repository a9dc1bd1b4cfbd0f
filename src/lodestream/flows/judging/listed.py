"""Lists of what speaks against a row, made only for the rows that have something in them.

Nearly every row has none. A list that is built for each row, then rid of its empty places, costs more than decoding it:
Spark runs such a step uncompiled, with every condition inside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql.functions import array, array_compact, lit, when

# A condition that is never null, and what is said where it is true.
Said = tuple[Column, Column]
_KIND = "array<string>"


def nothing() -> Column:
    """A list with nothing in it."""
    return array().cast(_KIND)


def no_list() -> Column:
    return lit(None).cast(_KIND)


def listed(said: Sequence[Said], *, otherwise: Column | None = None) -> Column:
    """What is said of a row, in order; where nothing is, an empty list, or `otherwise`."""
    empty = nothing() if otherwise is None else otherwise
    if not said:
        return empty
    texts = array_compact(array(*[when(condition, text) for condition, text in said])).cast(_KIND)
    return when(any_of([condition for condition, _ in said]), texts).otherwise(empty)


def any_of(conditions: Sequence[Column]) -> Column:
    """Balanced: Spark goes down an expression by recursion, and a contract may have hundreds of columns."""
    if len(conditions) <= 2:
        return reduce(lambda one, other: one | other, conditions)
    middle = len(conditions) // 2
    return any_of(conditions[:middle]) | any_of(conditions[middle:])
