"""What a table asks of its rows, as SQL: made once from its contract, the same for every batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from lodestream.contracts import Contract, Violation, quoting
from lodestream.contracts.conform import conform, over_value
from lodestream.contracts.violations import hidden
from lodestream.errors import DeclarationError
from lodestream.pipeline import Expectation

_VALUE = "_lode_x_value"
# Names and types of columns, as a function gives them.
Incoming = tuple[tuple[str, str], ...]


class Conversion(NamedTuple):
    """Of each field its name, the SQL of its value and the name that this has meanwhile; and where that fails."""

    values: tuple[tuple[str, str, str], ...]
    failed: tuple[Violation, ...]


class Rules:
    """`violations` speak against a row, `warnings` are only counted; `masks` is whether fields are hidden.

    `conversion` says how columns of given types become those of the contract.
    """

    def __init__(
        self,
        table: str,
        contract: Contract | None,
        expectations: Sequence[Expectation],
        arrival: str | None,
        keys: Sequence[str],
    ) -> None:
        self._table = table
        self._contract = contract
        found = list(contract.violations(arrival=arrival)) if contract else []
        # Rows without their key could not be told apart: all but one would pass for duplicates.
        named = {one.reason for one in found}
        found += [one for one in map(_keyless, keys) if one.reason not in named]
        self.violations = (*found, *(_expected(one) for one in expectations if one.action != "warn"))
        warned = contract.warnings() if contract else ()
        self.warnings = (*warned, *(_expected(one) for one in expectations if one.action == "warn"))
        self.masks = contract is not None and any(map(hidden, contract.fields))
        self.conversion: Callable[[Incoming], Conversion] = lru_cache(maxsize=8)(self._conversion)

    def _conversion(self, incoming: Incoming) -> Conversion:
        made = conform(self._contract, dict(incoming)) if self._contract is not None else ()
        self._refuse_impossible([(one.field.name, one.refusal) for one in made if one.refusal])
        names = [f"{_VALUE}_{number}" for number in range(len(made))]
        failed = [over_value(one, name) for one, name in zip(made, names, strict=True) if one.can_fail]
        values = [(one.field.name, one.value, name) for one, name in zip(made, names, strict=True)]
        return Conversion(tuple(values), tuple(failed))

    def _refuse_impossible(self, refusals: Sequence[tuple[str, str | None]]) -> None:
        if refusals:
            raise DeclarationError(
                f"{self._table} cannot fulfil its contract {self._contract.title if self._contract else ''}",
                why="; ".join(f"{name}: {why}" for name, why in refusals),
                fix="give the column the contract's type in the function, or state the conversion in the contract",
            )


def _keyless(key: str) -> Violation:
    return Violation(f"{key} is null", f"({quoting.name(key)} IS NULL)", "required", column=key)


def _expected(one: Expectation) -> Violation:
    return Violation(f"expect: {one.name}", f"NOT coalesce(({one.sql}\n), false)", action=one.action)
