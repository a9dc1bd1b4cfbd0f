"""Rows as they come, made to fit the contract: one projection per field, found by name, source or alias."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lodestream.contracts import moments, quoting
from lodestream.contracts.conversion import Conversion, convert, refused
from lodestream.contracts.limits import Limits
from lodestream.contracts.model import Contract, Field
from lodestream.contracts.types import Type, parse_type
from lodestream.contracts.violations import SHOWN, Violation, hidden

_REAL = ("float", "double")


@dataclass(frozen=True, slots=True)
class Conformed:
    """One column of the table: SQL for its value over the incoming columns, and where that fails.

    `refusal` says why no incoming value can be converted: a mistake in the contract or the code, not in a row.
    """

    field: Field
    value: str
    failed: Violation
    origins: tuple[str, ...]
    refusal: str | None = None

    @property
    def can_fail(self) -> bool:
        return self.failed.sql != "false"


def over_value(made: Conformed, name: str) -> Violation:
    """Where the conversion fails, said by the column `name` that holds the converted value: it is made once."""
    if quoting.is_name(made.value):
        return made.failed
    # Not behind a letter: `try_cast(x AS int)` has `cast(x AS int)` in it and is another value.
    inside = re.compile(rf"(?<!\w){re.escape(made.value)}")
    return replace(made.failed, sql=inside.sub(lambda _found: quoting.name(name), made.failed.sql))


def conform(
    contract: Contract, incoming: Mapping[str, str], *, by: Literal["name", "source"] = "name"
) -> tuple[Conformed, ...]:
    """The contract's columns over incoming columns (name to Spark type).

    `by="source"` for decoded events, whose names are the source's; `by="name"` for what a function returns.
    """
    kinds = {name: parse_incoming(text) for name, text in incoming.items()}
    return tuple(_column(field, kinds, by) for field in contract.fields)


def parse_incoming(text: str) -> Type:
    """Spark's own spelling of a type; what contracts cannot name (intervals) is kept as a name only."""
    if text.lower() in ("void", "null"):
        return Type("void")
    try:
        return parse_type(text)
    except ValueError:
        return Type(text)


def origins(field: Field, names: Sequence[str], by: Literal["name", "source"]) -> tuple[str, ...]:
    """The incoming columns that hold a field: its own name first, then what it was called before."""
    own = (field.name, field.source_name) if by == "name" else (field.source_name,)
    wanted = (*own, *field.aliases)
    found = [name for want in wanted for name in names if _same(name, want, field.reading.any_case)]
    return tuple(dict.fromkeys(found))


def unfilled(contract: Contract, columns: Sequence[str]) -> tuple[str, ...]:
    """Optional fields that no returned column holds: null in every row, and nothing else would ever say so."""
    return tuple(one.name for one in contract.fields if not one.required and not origins(one, columns, "name"))


def _same(name: str, wanted: str, any_case: bool) -> bool:
    return name == wanted or (any_case and name.lower() == wanted.lower())


def _column(field: Field, kinds: Mapping[str, Type], by: Literal["name", "source"]) -> Conformed:
    found = origins(field, list(kinds), by)
    conversions = [_value(field, quoting.name(name), kinds[name], 0) for name in found]
    merged = _first(field, [quoting.name(name) for name in found], conversions)
    shown = f"coalesce({', '.join(_text(name) for name in found)})" if found and not hidden(field) else None
    reason = f"{field.name} is not {_article(field.type)}{_where(field)}"
    failed = Violation(reason, merged.failed, "conversion", column=field.name, shown=shown)
    return Conformed(field, merged.value, failed, found, merged.refusal)


def _where(field: Field) -> str:
    """The zone belongs to the reason: a wall time that exists elsewhere may be one that clocks skip there."""
    zone = field.reading.zone
    return f" in {zone}" if zone and field.type == "timestamp" and moments.skips(zone) else ""


def _article(type_name: str) -> str:
    word = type_name if len(type_name) <= SHOWN else f"{type_name[: SHOWN - 3]}..."
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _text(name: str) -> str:
    return f"left(cast({quoting.name(name)} AS string), {SHOWN})"


def _first(field: Field, names: Sequence[str], conversions: Sequence[Conversion]) -> Conversion:
    """The first incoming column that has a value: while a field is renamed, events of both names arrive."""
    if not conversions:
        return Conversion(f"cast(NULL AS {field.type})")
    if len(conversions) == 1:
        return conversions[0]
    cases = list(zip(names, conversions, strict=True))
    value = " ".join(f"WHEN {name} IS NOT NULL THEN {found.value}" for name, found in cases)
    failed = " ".join(f"WHEN {name} IS NOT NULL THEN {found.failed}" for name, found in cases)
    refusal = next((found.refusal for found in conversions if found.refusal), None)
    return Conversion(f"CASE {value} END", f"CASE {failed} ELSE false END", refusal)


def _value(field: Field, value: str, incoming: Type, depth: int) -> Conversion:
    wanted = parse_type(field.type)
    if not wanted.nested or incoming.name == "void":
        return convert(value, incoming, wanted, field.reading)
    if incoming == wanted and not _holds_real(wanted):
        return Conversion(value)
    if incoming.name != wanted.name:
        return refused(value, wanted, f"{incoming} is not converted to {wanted}")
    match wanted.name:
        case "struct":
            return _struct(field, value, incoming, wanted, depth)
        case "array":
            return _array(field, value, incoming, wanted, depth)
    return _map(field, value, incoming, wanted, depth)


def _holds_real(kind: Type) -> bool:
    """NaN and infinities hide in nested values too, so those are looked at even when the types agree."""
    return kind.name in _REAL or any(_holds_real(inner) for _, inner in kind.members)


def _struct(field: Field, value: str, incoming: Type, wanted: Type, depth: int) -> Conversion:
    inner = field.fields or tuple(_inner(field, name, kind) for name, kind in wanted.members)
    kinds = dict(incoming.members)
    parts: list[tuple[Field, Conversion]] = []
    for member in inner:
        found = origins(member, list(kinds), "source")
        paths = [f"{value}.{quoting.name(name)}" for name in found]
        made = [_value(member, path, kinds[name], depth) for path, name in zip(paths, found, strict=True)]
        parts.append((member, _first(member, paths, made)))
    built = ", ".join(f"{quoting.text(member.name)}, {part.value}" for member, part in parts)
    struct = f"CASE WHEN {value} IS NOT NULL THEN named_struct({built}) END"
    return _gather(struct, [part for _, part in parts])


def _array(field: Field, value: str, incoming: Type, wanted: Type, depth: int) -> Conversion:
    item = field.items or _inner(field, "element", wanted.element)
    variable = f"item_{depth}"
    made = _value(item, variable, incoming.element, depth + 1)
    failed = f"coalesce(exists({value}, {variable} -> {made.failed}), false)"
    return Conversion(f"transform({value}, {variable} -> {made.value})", _worth(made.failed, failed), made.refusal)


def _map(field: Field, value: str, incoming: Type, wanted: Type, depth: int) -> Conversion:
    if incoming.key != wanted.key:
        # Two keys may become one after a conversion, and one of the values would be lost.
        return refused(value, wanted, f"map keys of {incoming.key} are not converted to {wanted.key}")
    key, item = f"key_{depth}", f"item_{depth}"
    made = _value(_inner(field, "value", wanted.value), item, incoming.value, depth + 1)
    failed = f"coalesce(exists(map_values({value}), {item} -> {made.failed}), false)"
    return Conversion(
        f"transform_values({value}, ({key}, {item}) -> {made.value})", _worth(made.failed, failed), made.refusal
    )


def _worth(inner: str, failed: str) -> str:
    return "false" if inner == "false" else failed


def _inner(parent: Field, name: str, kind: Type) -> Field:
    """A nested value that the contract only names by type is read the way its field is."""
    return Field(name, str(kind), reading=parent.reading, limits=Limits())


def _gather(value: str, parts: Sequence[Conversion]) -> Conversion:
    refusal = next((part.refusal for part in parts if part.refusal), None)
    return Conversion(value, refusal=refusal).also(*(part.failed for part in parts))
