"""Python annotations as column types: `str`, `int | None`, `list[float]`, `Literal["Y", "N"]`, another Record."""

from __future__ import annotations

import datetime
import decimal
import types as python_types
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lodestream.contracts import types
from lodestream.contracts.model import Field
from lodestream.errors import ContractError

_PLAIN: dict[Any, str] = {
    str: "string", int: "bigint", float: "double", bool: "boolean", bytes: "binary",
    datetime.date: "date", datetime.datetime: "timestamp",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Key:
    """In `Annotated[str, Key()]`: the column is part of the key."""


@dataclass(frozen=True, slots=True)
class About:
    """What an annotation says of a column."""

    type: str
    required: bool = True
    key: bool = False
    values: tuple[Any, ...] = ()
    fields: tuple[Field, ...] = ()
    items: Field | None = None


Inside = Callable[[Any], tuple[Field, ...] | None]


def described(hint: Any, where: str, stated: str | None, inside: Inside) -> About:
    """`stated` is a type that `column()` names; it wins over what the annotation would give."""
    if typing.get_origin(hint) is typing.Annotated:
        inner, *notes = typing.get_args(hint)
        named = next((note for note in notes if isinstance(note, str)), None)
        found = described(inner, where, stated or named, inside)
        return replace(found, key=any(isinstance(note, Key) or note is Key for note in notes))
    if typing.get_origin(hint) in (typing.Union, python_types.UnionType):
        return replace(described(_one(hint, where), where, stated, inside), required=False)
    if stated is not None:
        return replace(_structure(hint, where, inside), type=_canonical(stated, where))
    return _structure(hint, where, inside, strict=True)


def _one(hint: Any, where: str) -> Any:
    members = [member for member in typing.get_args(hint) if member is not type(None)]
    if len(members) != 1:
        raise ContractError(f"{where} can be several types", fix="a column has one type, with | None when optional")
    return members[0]


def _canonical(text: str, where: str) -> str:
    try:
        return types.canonical(text)
    except ValueError as wrong:
        raise ContractError(f"{where}: {wrong}") from wrong


def _structure(hint: Any, where: str, inside: Inside, *, strict: bool = False) -> About:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return About(_PLAIN[type(arguments[0])], values=arguments)
    if (members := inside(hint)) is not None:
        return About(str(types.struct(tuple((f.name, types.parse_type(f.type)) for f in members))), fields=members)
    if origin is list and arguments != (Any,):
        element = described(arguments[0], f"{where}[]", None, inside)
        return About(f"array<{element.type}>", items=_item(element))
    if origin is dict and Any not in arguments:
        key, value = (described(argument, where, None, inside).type for argument in arguments)
        return About(f"map<{key},{value}>")
    if hint in _PLAIN:
        return About(_PLAIN[hint])
    if strict:
        raise ContractError(f"{where} has no column type", fix=_fix(hint))
    return About("string")


def _fix(hint: Any) -> str:
    if hint is decimal.Decimal:
        return 'say how precise it is: column("decimal(10,2)")'
    return 'name it: column("map<string,bigint>"), or annotate str, int, float, bool, bytes, date, datetime'


def _item(element: About) -> Field | None:
    """What is inside an array, when there is more to say of it than its type."""
    item = Field("element", element.type, required=element.required, fields=element.fields, items=element.items)
    return item if element.fields or element.items or element.required else None
