"""Columns whose values belong to one row alone: a row that brings a value which another key has is refused.

The first position wins within a batch, and what the table holds wins over the batch. A value is compared as far as
duplicates are: in the whole table, or within the periods that the declaration bounds them to.

A row is refused when another *might* get the value, whether or not that one is kept in the end: so no order of
refusals, duplicates and updates lets two rows through. What was refused too much is replayed once the value is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql.functions import (
    broadcast,
    coalesce,
    col,
    collect_set,
    concat,
    first,
    lit,
    row_number,
    struct,
    when,
)

from lodestream.contracts import Contract
from lodestream.contracts.quoting import name as quoted
from lodestream.contracts.violations import SHOWN, hidden, taken
from lodestream.flows.columns.pruning import Pruning
from lodestream.flows.judging.judge import Said, listed
from lodestream.names import CARRIED, REASONS
from lodestream.tables.find import EXACT, MOST_KEYS, among
from lodestream.tables.groupable import content

_CLAIMING, _CLAIM, _HELD, _TAKEN = "_lode_x_claiming", "_lode_x_claim", "_lode_x_held", "_lode_x_taken"


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """The unique columns of one table besides its key, and the key that tells its rows apart; none: each row is one."""

    contract: Contract
    columns: tuple[str, ...]
    keys: tuple[str, ...]

    @classmethod
    def of(cls, contract: Contract | None, keys: Sequence[str]) -> Uniqueness | None:
        columns = contract.unique_besides(keys) if contract else ()
        return cls(contract, columns, tuple(keys)) if contract and columns else None

    def filters(self) -> dict[str, str]:
        """Table properties by which a value is found without reading the others."""
        return {f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in self.columns}

    def values(self, judged: DataFrame, rows: int, claiming: Column) -> list[Column]:
        """Aggregates that list the values of a batch, when they are few; `claiming` rows bring theirs to the table."""
        if rows > MOST_KEYS:
            return []
        listed = [name for name in self.columns if isinstance(judged.schema[name].dataType, EXACT)]
        return [collect_set(when(claiming, col(quoted(name)))).alias(f"values_{name}") for name in listed]

    def refused(
        self,
        judged: DataFrame,
        claiming: Column,
        stored: DataFrame,
        bound: Pruning,
        order: Sequence[Column],
        seen: Row,
    ) -> DataFrame:
        """The judged rows with a further reason for each value that another row has."""
        near = bound.only(stored, seen)
        marked = judged.withColumn(_CLAIMING, claiming)
        for number, name in enumerate(self.columns):
            values = list(seen[f"values_{name}"]) if f"values_{name}" in seen else []
            held = self._holders(near, name, bound, values)
            marked = self._marked(marked, held, name, bound, order, f"{_TAKEN}_{number}")
        found = [self._reason(name, f"{_TAKEN}_{number}") for number, name in enumerate(self.columns)]
        reasons = concat(col(REASONS), listed(found))
        return marked.withColumn(REASONS, reasons).select(*map(quoted, judged.columns))

    def _holders(self, near: DataFrame, name: str, bound: Pruning, values: Sequence[object]) -> DataFrame:
        """Per stored value (and period) a key that has it."""
        listed = among(quoted(name), values, near.schema[name].dataType)
        rows = near.where(listed) if listed else near.where(col(quoted(name)).isNotNull())
        return rows.groupBy(_claim(name, bound)).agg(first(self._key()).alias(_HELD))

    def _marked(
        self,
        rows: DataFrame,
        held: DataFrame,
        name: str,
        bound: Pruning,
        order: Sequence[Column],
        flag: str,
    ) -> DataFrame:
        claiming = col(_CLAIMING) & col(quoted(name)).isNotNull()
        claims = rows.where(claiming).withColumn(_CLAIM, _claim(name, bound))
        known = held.join(broadcast(claims.select(_CLAIM)), _CLAIM, "left_semi")
        joined = claims.join(broadcast(known), _CLAIM, "left")
        earlier = Window.partitionBy(_CLAIM).orderBy(*(order or [content(col(CARRIED))]))
        if self.keys:
            lost = coalesce(col(_HELD), first(self._key()).over(earlier)) != self._key()
        else:  # every row is one of its own
            lost = col(_HELD).isNotNull() | (row_number().over(earlier) > 1)
        decided = joined.withColumn(flag, lost)
        rest = rows.where(~claiming).withColumn(flag, lit(False))
        return decided.select(*map(quoted, rest.columns)).unionByName(rest)

    def _key(self) -> Column:
        return struct(*map(quoted, self.keys)) if self.keys else lit(True)

    def _reason(self, name: str, flag: str) -> Said:
        said: Column = lit(taken(name))
        if not hidden(self.contract[name]):
            said = concat(said, lit(": "), col(quoted(name)).cast("string").substr(1, SHOWN))
        return col(flag), said


def _claim(name: str, bound: Pruning) -> Column:
    """What only one row may have. A struct, because in it a period without a value equals another one."""
    return struct(col(quoted(name)).alias("value"), *bound.periods()).alias(_CLAIM)
