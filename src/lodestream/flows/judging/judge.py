"""Hold rows against a contract: which may enter the table, which become dead letters, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import array, array_compact, col, concat, expr, lit, when

from lodestream.contracts import Contract, Violation, quoting
from lodestream.contracts.conform import conform, over_value
from lodestream.contracts.masking import MaskingKey, masked
from lodestream.contracts.violations import hidden
from lodestream.errors import DeclarationError
from lodestream.names import CARRIED, FILTERED, REASONS, WARNED, reserved
from lodestream.pipeline import Expectation, Filter

if TYPE_CHECKING:
    from lodestream.flows.judging.terms import Terms

_UNFIT, _VALUE = "_lode_x_unfit", "_lode_x_value"
# A condition that is never null, and what is said where it is true.
Said = tuple[Column, Column]
_KIND = "array<string>"
# Names and types of columns, as a function gives them.
Incoming = tuple[tuple[str, str], ...]


class _Conversion(NamedTuple):
    """By field the SQL of its value and the name that this has; and what is wrong where a conversion fails."""

    values: tuple[tuple[str, str, str], ...]
    failed: tuple[Violation, ...]


@dataclass(frozen=True)
class Judge:
    """Adds `_reasons`, `_filtered` and `_warned` to conformed rows; rejects nothing by itself.

    The contract becomes SQL once, not with each batch.
    """

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
        return self._judged(self._converted(rows, self._conversion(tuple(incoming))))

    @cached_property
    def _conversion(self) -> Callable[[Incoming], _Conversion]:
        return lru_cache(maxsize=8)(self._converting)

    def _converting(self, incoming: Incoming) -> _Conversion:
        """How columns of these types are converted. The same table gives the same ones with every batch."""
        made = conform(self.contract, dict(incoming)) if self.contract is not None else ()
        self._refuse_impossible([(one.field.name, one.refusal) for one in made if one.refusal])
        names = [f"{_VALUE}_{number}" for number in range(len(made))]
        failed = [over_value(one, name) for one, name in zip(made, names, strict=True) if one.can_fail]
        values = [(one.field.name, one.value, name) for one, name in zip(made, names, strict=True)]
        return _Conversion(tuple(values), tuple(failed))

    def _converted(self, rows: DataFrame, made: _Conversion) -> DataFrame:
        """The contract's columns, and in `_UNFIT` what could not be converted; null where everything could."""
        # A step of its own: both the table and the question whether it went well ask for a value that is made once.
        both = rows.select("*", *[expr(sql).alias(name) for _, sql, name in made.values])
        # The offending value is gone after the conversion, so these reasons are made beside it.
        failed = listed([_reason(one) for one in made.failed], otherwise=no_list())
        values = [col(name).alias(field) for field, _, name in made.values]
        beside = map(quoting.name, self._beside(rows))
        return both.select(*values, *beside, col(CARRIED), failed.alias(_UNFIT))

    def _judged(self, rows: DataFrame) -> DataFrame:
        reasons = listed([_reason(violation) for violation in self._violations])
        # A value that did not convert is null now: "is null" beside "is not a double" would say it twice.
        verdicts = {
            REASONS: when(col(_UNFIT).isNotNull(), col(_UNFIT)).otherwise(reasons),
            FILTERED: filtered_by(self.filters),
            WARNED: listed([(expr(one.sql), lit(one.reason)) for one in self._warnings]),
        }
        own = [quoting.name(name) for name in rows.columns if name not in (_UNFIT, CARRIED, *verdicts)]
        judged = rows.select(*own, CARRIED, *[column.alias(name) for name, column in verdicts.items()])
        return self._masked(judged.drop(*self._beside(rows)))

    def _beside(self, rows: DataFrame) -> list[str]:
        """What the function returned besides the contract's columns: filters and expectations see it, no table does."""
        if self.contract is None or not (self.filters or self.expectations):
            return []
        known = {field.name.lower() for field in self.contract.fields}
        return [name for name in rows.columns if name.lower() not in known and not reserved(name)]

    @cached_property
    def masks(self) -> bool:
        return self.contract is not None and any(map(hidden, self.contract.fields))

    def _masked(self, judged: DataFrame) -> DataFrame:
        """Rules saw the values as they came; whatever is written from here on does not."""
        if self.contract is None or not self.masks:
            return judged
        shown = masked(self.contract, MaskingKey.of_environment(self.contract))
        return judged.withColumns({name: expr(sql).cast(judged.schema[name].dataType) for name, sql in shown.items()})

    @cached_property
    def _violations(self) -> list[Violation]:
        found = list(self.contract.violations(arrival=self.arrival)) if self.contract else []
        # Rows without their key could not be told apart: all but one would pass for duplicates.
        named = {one.reason for one in found}
        found += [one for one in map(_keyless, self.keys) if one.reason not in named]
        return found + [_expected(one) for one in self.expectations if one.action != "warn"]

    @cached_property
    def _warnings(self) -> list[Violation]:
        found = list(self.contract.warnings()) if self.contract else []
        return found + [_expected(one) for one in self.expectations if one.action == "warn"]

    def _refuse_impossible(self, refusals: Sequence[tuple[str, str | None]]) -> None:
        if refusals:
            raise DeclarationError(
                f"{self.table} cannot fulfil its contract {self.contract.title if self.contract else ''}",
                why="; ".join(f"{name}: {why}" for name, why in refusals),
                fix="give the column the contract's type in the function, or state the conversion in the contract",
            )


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


def _keyless(key: str) -> Violation:
    return Violation(f"{key} is null", f"({quoting.name(key)} IS NULL)", "required", column=key)


def _expected(one: Expectation) -> Violation:
    return Violation(f"expect: {one.name}", f"NOT coalesce(({one.sql}\n), false)", action=one.action)


def nothing() -> Column:
    """A list with nothing in it."""
    return array().cast(_KIND)


def no_list() -> Column:
    return lit(None).cast(_KIND)


def listed(said: Sequence[Said], *, otherwise: Column | None = None) -> Column:
    """What is said of a row, in order; where nothing is, an empty list, or `otherwise`.

    Nearly every row has none. A list that is built for each row, then rid of its empty places, costs more than decoding
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
