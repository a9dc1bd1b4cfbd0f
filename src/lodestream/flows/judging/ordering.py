"""Where each change of a key stands in the order of all of them, and whether it deletes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    coalesce,
    col,
    concat,
    expr,
    lit,
    struct,
    to_json,
    when,
    xxhash64,
)
from pyspark.sql.types import StructType

from lodestream.contracts.expressions import columns_in
from lodestream.contracts.quoting import name as quoted
from lodestream.errors import DeclarationError
from lodestream.flows.judging.judge import Judge, any_of, listed, nothing
from lodestream.names import CARRIED, FILTERED, PLACE, REASONS
from lodestream.pipeline.decoders import TOMBSTONE, TRUNCATE
from lodestream.sources.kinds import located_by
from lodestream.tables.hidden import GONE

if TYPE_CHECKING:
    from lodestream.flows.judging.terms import Terms

_NOTICE = "_lode_x_notice"


@dataclass(frozen=True)
class KeyedJudge(Judge):
    """Adds `_place` to judged rows.

    A delete needs its key and its place, and nothing else of the contract: the event often has no more than that.
    `notice` is what the decoder of the table declares of messages that bring no row; without it every row is one.
    """

    sequence: tuple[str, ...] = ()
    delete_when: str | None = None
    notice: str | None = None

    @classmethod
    def of(cls, terms: Terms) -> Judge:
        table = terms.table
        return cls(
            table.name, terms.contract, table.filters, table.expectations, terms.arrival, terms.keys,
            table.sequence_by, table.delete_when, table.decode.notice if table.decode is not None else None,
        )  # fmt: skip

    def conformed(self, rows: DataFrame) -> DataFrame:
        self._check_columns(rows)
        notice = self._notice_of(rows)
        gone = expr(f"coalesce(({self.delete_when}\n), false)") if self.delete_when else lit(False)
        gone = gone | notice.eqNullSafe(lit(TRUNCATE))
        # The function's columns are gone once the rows are conformed, so the place rides along in the raw row.
        place = place_of(rows, self.sequence, gone)
        marked = rows.withColumn(CARRIED, col(CARRIED).withField(PLACE, place).withField(_NOTICE, notice))
        judged = Judge.conformed(self, marked).withColumn(PLACE, col(f"{CARRIED}.{PLACE}"))
        noticed = col(f"{CARRIED}.{_NOTICE}")
        filtered = coalesce(noticed, when(~deletes(), col(FILTERED)))
        judged = judged.withColumn(REASONS, self._reasons(noticed)).withColumn(FILTERED, filtered)
        return judged.withColumn(CARRIED, col(CARRIED).dropFields(PLACE, _NOTICE))

    def _notice_of(self, rows: DataFrame) -> Column:
        """What a message of a change feed is when it is no row of the table, else null."""
        given = {one.lower() for one in rows.columns}
        if self.notice is None or not columns_in(self.notice) <= given:
            return lit(None).cast("string")
        return expr(self.notice)

    def _reasons(self, noticed: Column) -> Column:
        keyless = [(col(quoted(key)).isNull(), lit(f"{key} is null")) for key in self.keys]
        known = ~noticed.eqNullSafe(lit(TOMBSTONE))
        placeless = [
            (known & col(f"{PLACE}.by_{number}").isNull(), lit(f"{one} is null: sequence_by needs it"))
            for number, one in enumerate(self.sequence)
        ]
        of_key = when(noticed.isNotNull(), nothing()).when(deletes(), listed(keyless)).otherwise(col(REASONS))
        if not placeless:
            return of_key
        return when(any_of([one for one, _ in placeless]), concat(of_key, listed(placeless))).otherwise(of_key)

    def _check_columns(self, rows: DataFrame) -> None:
        missing = [one for one in self.sequence if one not in rows.columns]
        if missing:
            raise DeclarationError(
                f"{self.table}: sequence_by names {', '.join(missing)}, which the function does not give",
                why=f"its columns: {', '.join(one for one in rows.columns if one != CARRIED)}",
                fix="return the column from the function, or name another one",
            )


def deletes() -> Column:
    return col(f"{PLACE}.{GONE}")


def place_of(rows: DataFrame, sequence: Sequence[str], gone: Column) -> Column:
    """The sequence, then the coordinates in the source: partition and offset, or file and row.

    Without `sequence_by` the source's own time stands first, if it has one. Rows that have no position, because
    another table gave them, are told apart by their content: any fixed order will do, as long as it is the same in
    every slicing.
    """
    raw = rows.schema[CARRIED].dataType
    names = raw.names if isinstance(raw, StructType) else []
    located = located_by(names)
    by = [col(quoted(one)) for one in sequence]
    if not by and located and located.clock in names:
        by = [col(f"{CARRIED}.{located.clock}")]
    parts = [one.alias(f"by_{number}") for number, one in enumerate(by)]
    parts += [col(f"{CARRIED}.{one}").alias(one) for one in located.order] if located else []
    if located is None:
        own = [quoted(one) for one in rows.columns if one != CARRIED]
        parts.append(xxhash64(to_json(struct(*own))).alias("content"))
    return struct(*parts, gone.alias(GONE))
