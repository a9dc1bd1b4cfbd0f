"""Hold rows against a contract: which may enter the table, which become dead letters, and why.

In a keyed table also where each change of a key stands in the order of all of them, and whether it deletes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    array,
    array_compact,
    coalesce,
    col,
    concat,
    expr,
    lit,
    struct,
    when,
)
from pyspark.sql.types import StructType

from lodestream.contracts import Contract, Violation
from lodestream.contracts.expressions import columns_in
from lodestream.contracts.masking import MaskingKey, masked
from lodestream.contracts.quoting import name as quoted
from lodestream.errors import DeclarationError
from lodestream.flows.judging.rules import Conversion, Rules
from lodestream.names import CARRIED, FILTERED, ORDER_KEY, REASONS, WARNED, reserved
from lodestream.pipeline import Expectation, Filter
from lodestream.pipeline.decoders import TOMBSTONE, TRUNCATE
from lodestream.sources.kinds import located_by
from lodestream.tables.groupable import content
from lodestream.tables.hidden import GONE

if TYPE_CHECKING:
    from lodestream.flows.judging.terms import Terms

_UNFIT, _NOTICE = "_lode_x_unfit", "_lode_x_notice"
# A condition that is never null, and what is said where it is true.
Said = tuple[Column, Column]
_KIND = "array<string>"


@dataclass(frozen=True)
class Judge:
    """Adds `_reasons`, `_filtered` and `_warned` to conformed rows; rejects nothing by itself."""

    table: str
    contract: Contract | None
    filters: Sequence[Filter] = ()
    expectations: Sequence[Expectation] = ()
    arrival: str | None = None
    keys: Sequence[str] = ()

    @classmethod
    def of(cls, terms: Terms) -> Judge:
        table = terms.table
        return cls(table.name, terms.contract, table.filters, table.expectations, terms.arrival, terms.keys)

    @classmethod
    def of_followed(cls, terms: Terms) -> Judge:
        """For the rows of a table that is followed: no broker says when these came."""
        table = terms.table
        return cls(table.name, terms.contract, table.filters, table.expectations, None, terms.keys)

    def conformed(self, rows: DataFrame) -> DataFrame:
        """The contract's columns, exactly converted, and the reasons a row must not pass."""
        if self.contract is None:
            return self._judged(rows.withColumn(_UNFIT, no_list()))
        incoming = [(field.name, field.dataType.simpleString()) for field in rows.schema if field.name != CARRIED]
        return self._judged(self._converted(rows, self._rules.conversion(tuple(incoming))))

    def _converted(self, rows: DataFrame, made: Conversion) -> DataFrame:
        """The contract's columns, and in `_UNFIT` what could not be converted; null where everything could."""
        # A step of its own: both the table and the question whether it went well ask for a value that is made once.
        both = rows.select("*", *[expr(sql).alias(name) for _, sql, name in made.values])
        # The offending value is gone after the conversion, so these reasons are made beside it.
        failed = listed([_reason(one) for one in made.failed], otherwise=no_list())
        values = [col(name).alias(field) for field, _, name in made.values]
        beside = map(quoted, self._beside(rows))
        return both.select(*values, *beside, col(CARRIED), failed.alias(_UNFIT))

    def _judged(self, rows: DataFrame) -> DataFrame:
        reasons = listed([_reason(violation) for violation in self._rules.violations])
        # A value that did not convert is null now: "is null" beside "is not a double" would say it twice.
        verdicts = {
            REASONS: when(col(_UNFIT).isNotNull(), col(_UNFIT)).otherwise(reasons),
            FILTERED: filtered_by(self.filters),
            WARNED: listed([(expr(one.sql), lit(one.reason)) for one in self._rules.warnings]),
        }
        own = [quoted(name) for name in rows.columns if name not in (_UNFIT, CARRIED, *verdicts)]
        judged = rows.select(*own, CARRIED, *[column.alias(name) for name, column in verdicts.items()])
        return self._masked(judged.drop(*self._beside(rows)))

    def _beside(self, rows: DataFrame) -> list[str]:
        """What the function returned besides the contract's columns: filters and expectations see it, no table does."""
        if self.contract is None or not (self.filters or self.expectations):
            return []
        known = {field.name.lower() for field in self.contract.fields}
        return [name for name in rows.columns if name.lower() not in known and not reserved(name)]

    @cached_property
    def _rules(self) -> Rules:
        return Rules(self.table, self.contract, self.expectations, self.arrival, self.keys)

    @property
    def masks(self) -> bool:
        return self._rules.masks

    def _masked(self, judged: DataFrame) -> DataFrame:
        """Rules saw the values as they came; whatever is written from here on does not."""
        if self.contract is None or not self._rules.masks:
            return judged
        shown = masked(self.contract, MaskingKey.of_environment(self.contract))
        return judged.withColumns({name: expr(sql).cast(judged.schema[name].dataType) for name, sql in shown.items()})


def filtered_by(filters: Sequence[Filter]) -> Column:
    """The first declared filter that does not keep the row, or null; an unknown outcome does not keep it."""
    verdict: Column = lit(None).cast("string")
    for one in reversed(filters):
        verdict = when(expr(f"NOT coalesce(({one.sql}\n), false)"), lit(one.name)).otherwise(verdict)
    return verdict


def _reason(violation: Violation) -> Said:
    text: Column = lit(violation.reason)
    if violation.shown:
        text = concat(text, lit(": "), expr(f"coalesce({violation.shown}, 'null')"))
    return expr(violation.sql), text


def nothing() -> Column:
    """A list with nothing in it."""
    return array().cast(_KIND)


def no_list() -> Column:
    return lit(None).cast(_KIND)


def listed(said: Sequence[Said], *, otherwise: Column | None = None) -> Column:
    """What is said of a row, in order; where nothing is, an empty list, or `otherwise`.

    Nearly every row has none. A list that is built for each row, then rid of its empty ones, costs more than decoding
    it: Spark runs such a step uncompiled, with every condition inside it.
    """
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


@dataclass(frozen=True)
class KeyedJudge(Judge):
    """Adds the order key to judged rows.

    A delete needs its key and its order key, and nothing else of the contract: the event often has no more than that.
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
        # The function's columns are gone once the rows are conformed, so the order key rides along in the raw row.
        order_key = order_key_of(rows, self.sequence, gone)
        marked = rows.withColumn(CARRIED, col(CARRIED).withField(ORDER_KEY, order_key).withField(_NOTICE, notice))
        judged = Judge.conformed(self, marked).withColumn(ORDER_KEY, col(f"{CARRIED}.{ORDER_KEY}"))
        noticed = col(f"{CARRIED}.{_NOTICE}")
        filtered = coalesce(noticed, when(~deletes(), col(FILTERED)))
        judged = judged.withColumn(REASONS, self._reasons(noticed)).withColumn(FILTERED, filtered)
        return judged.withColumn(CARRIED, col(CARRIED).dropFields(ORDER_KEY, _NOTICE))

    def _notice_of(self, rows: DataFrame) -> Column:
        """What a message of a change feed is when it is no row of the table, else null."""
        given = {one.lower() for one in rows.columns}
        if self.notice is None or not columns_in(self.notice) <= given:
            return lit(None).cast("string")
        return expr(self.notice)

    def _reasons(self, noticed: Column) -> Column:
        keyless = [(col(quoted(key)).isNull(), lit(f"{key} is null")) for key in self.keys]
        known = ~noticed.eqNullSafe(lit(TOMBSTONE))
        unordered = [
            (known & col(f"{ORDER_KEY}.by_{number}").isNull(), lit(f"{one} is null: sequence_by needs it"))
            for number, one in enumerate(self.sequence)
        ]
        of_key = when(noticed.isNotNull(), nothing()).when(deletes(), listed(keyless)).otherwise(col(REASONS))
        if not unordered:
            return of_key
        return when(any_of([one for one, _ in unordered]), concat(of_key, listed(unordered))).otherwise(of_key)

    def _check_columns(self, rows: DataFrame) -> None:
        missing = [one for one in self.sequence if one not in rows.columns]
        if missing:
            raise DeclarationError(
                f"{self.table}: sequence_by names {', '.join(missing)}, which the function does not give",
                why=f"its columns: {', '.join(one for one in rows.columns if one != CARRIED)}",
                fix="return the column from the function, or name another one",
            )


def deletes() -> Column:
    return col(f"{ORDER_KEY}.{GONE}")


def order_key_of(rows: DataFrame, sequence: Sequence[str], gone: Column) -> Column:
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
        parts.append(content(struct(*own)).alias("content"))
    return struct(*parts, gone.alias(GONE))
