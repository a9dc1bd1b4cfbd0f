"""How one type relates to another, and what a type holds inside."""

from __future__ import annotations

from typing import Literal

from lodestream.contracts.model import Field
from lodestream.contracts.types import INTEGRAL, Type, parse_type

Relation = Literal["same", "widened", "narrowed", "changed"]


def relation(old: Type, new: Type) -> Relation:
    """What happened to a plain type, by Iceberg's rules: int to bigint, float to double, more decimal digits."""
    if old == new:
        return "same"
    if _widens(old, new):
        return "widened"
    return "narrowed" if _widens(new, old) else "changed"


def _widens(old: Type, new: Type) -> bool:
    if old.integral and new.integral:
        return INTEGRAL[old.name] < INTEGRAL[new.name]
    if old.name == new.name == "decimal":
        return old.scale == new.scale and (old.precision or 0) < (new.precision or 0)
    return (old.name, new.name) == ("float", "double")


def members(field: Field) -> tuple[Field, ...]:
    """The fields of a struct, whether the contract describes them or only names their types."""
    kind = parse_type(field.type)
    if field.fields or kind.name != "struct":
        return field.fields
    return tuple(Field(name, str(inner), reading=field.reading) for name, inner in kind.members)


def element(field: Field) -> Field | None:
    """What an array or a map holds."""
    kind = parse_type(field.type)
    if field.items or kind.name not in ("array", "map"):
        return field.items
    inner = kind.element if kind.name == "array" else kind.value
    return Field("element" if kind.name == "array" else "value", str(inner), reading=field.reading)
