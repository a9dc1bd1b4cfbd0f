"""The contract as SQL: each condition is true exactly where a conformed row breaks it, and never null."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from lodestream.contracts import moments, quoting
from lodestream.contracts.limits import judging
from lodestream.contracts.model import Action, Contract, Field, Rule, Threshold
from lodestream.contracts.types import parse_type

Kind = Literal["required", "limit", "rule", "late", "conversion"]
SHOWN = 80


@dataclass(frozen=True, slots=True)
class Violation:
    """One way to break the contract. `shown` is SQL for the offending value, shortened, or null."""

    reason: str
    sql: str
    kind: Kind = "rule"
    action: Action = "quarantine"
    column: str | None = None
    shown: str | None = None
    threshold: Threshold | None = None


def of(contract: Contract, *, arrival: str | None = None) -> tuple[Violation, ...]:
    """What keeps a row out of the table: missing values, limits, rules that quarantine or fail, lateness."""
    found = [violation for field in contract.fields for violation in _field(field, field.name in contract.keys)]
    found += [_rule(rule, contract) for rule in contract.rules if rule.action != "warn"]
    late = _late(contract, arrival) if arrival else None
    return tuple([*found, late] if late else found)


def taken(column: str) -> str:
    """The reason against a value that another row has. No condition on one row tells it, so it is not among `of`."""
    return f"{column} is not unique"


def warned(contract: Contract) -> tuple[Violation, ...]:
    return tuple(_rule(rule, contract) for rule in contract.rules if rule.action == "warn")


def _rule(rule: Rule, contract: Contract) -> Violation:
    # A rule must be true: a null outcome would otherwise let a row pass that nobody checked.
    sql = f"NOT coalesce(({rule.expression}\n), false)"
    field = next((found for found in contract.fields if found.name == rule.column), None)
    shown = shown_value(field, quoting.name(field.name)) if field else None
    return Violation(f"rule: {rule.name}", sql, "rule", rule.action, rule.column, shown, rule.threshold)


def _late(contract: Contract, arrival: str) -> Violation | None:
    if contract.lateness is None or contract.event_time is None:
        return None
    field = contract[contract.event_time]
    moment = quoting.name(field.name)
    if parse_type(field.type).name != "timestamp":
        # A wall time is read in the field's zone; a contract that names none speaks of UTC.
        moment = moments.instant(f"cast({moment} AS timestamp_ntz)", field.reading.zone or "UTC")
    microseconds = round(contract.lateness * 1_000_000)
    sql = f"coalesce(unix_micros({arrival}) - unix_micros({moment}) > {microseconds}L, false)"
    return Violation("late", sql, "late", column=field.name, shown=shown_value(field, quoting.name(field.name)))


def _field(field: Field, key: bool) -> Iterator[Violation]:
    # Rows without their key could be neither updated nor told apart.
    stated = replace(field, required=True) if key else field
    yield from _value(stated, quoting.name(field.name), field.name, depth=0)


def _value(field: Field, value: str, path: str, depth: int) -> Iterator[Violation]:
    """The field itself, then what is inside it; nested conditions only speak where the parent is there."""
    if field.required:
        yield Violation(f"{path} is null", f"({value} IS NULL)", "required", column=path)
    for reason, sql in _limits(field, value):
        text = f"{path} {reason}"
        yield Violation(text, f"coalesce({sql}, false)", "limit", column=path, shown=shown_value(field, value))
    for inner in field.fields:
        for found in _value(inner, f"{value}.{quoting.name(inner.name)}", f"{path}.{inner.name}", depth):
            yield replace(found, sql=f"({value} IS NOT NULL AND {found.sql})")
    if field.items:
        yield from _items(field.items, value, path, depth)


def _items(item: Field, value: str, path: str, depth: int) -> Iterator[Violation]:
    variable = f"item_{depth}"
    for found in _value(item, variable, f"{path}[]", depth + 1):
        sql = f"coalesce(exists({value}, {variable} -> {found.sql}), false)"
        yield replace(found, sql=sql, shown=shown_value(item, value))


def hidden(field: Field) -> bool:
    inner = (*field.fields, field.items) if field.items else field.fields
    return field.masking is not None or any(hidden(part) for part in inner)


def shown_value(field: Field, value: str) -> str | None:
    """SQL for a short text of the value. What the contract masks is not shown, not even when it is wrong."""
    if hidden(field):
        return None
    return f"left(cast({value} AS string), {SHOWN})"


def _limits(field: Field, value: str) -> Iterator[tuple[str, str]]:
    kind = parse_type(field.type).name
    for one in judging():
        stated = one.stated(field.limits)
        if one.broken and stated is not None:
            yield one.broken(stated, value, kind)
