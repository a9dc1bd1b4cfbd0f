"""Spark types as plain values: parsed from DDL text, written back in one spelling."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lodestream.config import nearest
from lodestream.contracts import quoting

ATOMIC = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double",
    "string", "binary", "date", "timestamp", "timestamp_ntz", "variant",
)  # fmt: skip
TEMPORAL = ("date", "timestamp", "timestamp_ntz")
_SPELLINGS = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "text": "string", "bool": "boolean", "timestamp_ltz": "timestamp",
    "dec": "decimal", "numeric": "decimal", "character": "char",
}  # fmt: skip
INTEGRAL = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|[\w.@-]+|[<>(),:])", re.UNICODE)


@dataclass(frozen=True, slots=True)
class Type:
    """One Spark type; `str()` gives its DDL text."""

    name: str
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    members: tuple[tuple[str, Type], ...] = ()

    def __str__(self) -> str:
        match self.name:
            case "decimal":
                return f"decimal({self.precision},{self.scale})"
            case "varchar" | "char":
                return f"{self.name}({self.length})"
            case "struct":
                return "struct<" + ",".join(f"{_member(key)}:{kind}" for key, kind in self.members) + ">"
            case "array":
                return f"array<{self.element}>"
            case "map":
                return f"map<{self.key},{self.value}>"
        return self.name

    @property
    def element(self) -> Type:
        return dict(self.members)["element"]

    @property
    def key(self) -> Type:
        return dict(self.members)["key"]

    @property
    def value(self) -> Type:
        return dict(self.members)["value"]

    @property
    def integral(self) -> bool:
        return self.name in INTEGRAL

    @property
    def numeric(self) -> bool:
        return self.integral or self.name in ("float", "double", "decimal")

    @property
    def nested(self) -> bool:
        return self.name in ("struct", "array", "map")


def decimal(precision: int, scale: int) -> Type:
    return Type("decimal", precision=precision, scale=scale)


def array(element: Type) -> Type:
    return Type("array", members=(("element", element),))


def mapping(key: Type, value: Type) -> Type:
    return Type("map", members=(("key", key), ("value", value)))


def struct(members: tuple[tuple[str, Type], ...]) -> Type:
    return Type("struct", members=members)


def parse_type(text: str) -> Type:
    """The type that a DDL text names. Raises ValueError with what is wrong with it."""
    tokens = _Tokens(text)
    found = _type(tokens)
    tokens.finish()
    return found


def canonical(text: str) -> str:
    return str(parse_type(text))


def _member(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else quoting.name(name)


class _Tokens:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        return match.group(1) if match else ""

    def take(self, expected: str | None = None) -> str:
        match = _TOKEN.match(self.text, self.at)
        found = match.group(1) if match else ""
        if not match or (expected is not None and found != expected):
            raise ValueError(f"{self.text!r} is not a type: expected {expected or 'a type'} at {self.at}")
        self.at = match.end()
        return found

    def finish(self) -> None:
        if self.text[self.at :].strip():
            raise ValueError(f"{self.text!r} is not a type: {self.text[self.at :].strip()!r} is left over")


def _type(tokens: _Tokens) -> Type:
    word = tokens.take().lower()
    word = _SPELLINGS.get(word, word)
    if word in ATOMIC:
        return Type(word)
    if word == "decimal":
        return _decimal(tokens)
    if word in ("varchar", "char"):
        return Type(word, length=_numbers(tokens, 1)[0]) if tokens.peek() == "(" else Type("string")
    if word == "array":
        tokens.take("<")
        element = _type(tokens)
        tokens.take(">")
        return array(element)
    if word == "map":
        return _map(tokens)
    if word == "struct":
        return _struct(tokens)
    close = nearest(word, (*ATOMIC, *_SPELLINGS, "decimal", "varchar", "char", "array", "map", "struct"))
    raise ValueError(f"{word!r} is not a Spark type" + (f": did you mean {close}?" if close else ""))


def _decimal(tokens: _Tokens) -> Type:
    precision, scale = [*_numbers(tokens, 2), 0][:2] if tokens.peek() == "(" else (10, 0)
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise ValueError(f"decimal({precision},{scale}): precision is 1..38 and scale 0..precision")
    return decimal(precision, scale)


def _numbers(tokens: _Tokens, most: int) -> list[int]:
    tokens.take("(")
    found = [_number(tokens)]
    while len(found) < most and tokens.peek() == ",":
        tokens.take(",")
        found.append(_number(tokens))
    tokens.take(")")
    return found


def _number(tokens: _Tokens) -> int:
    word = tokens.take()
    if not re.fullmatch(r"[0-9]{1,9}", word):
        raise ValueError(f"{tokens.text!r} is not a type: {word!r} is not a number")
    return int(word)


def _map(tokens: _Tokens) -> Type:
    tokens.take("<")
    key = _type(tokens)
    tokens.take(",")
    value = _type(tokens)
    tokens.take(">")
    return mapping(key, value)


def _struct(tokens: _Tokens) -> Type:
    tokens.take("<")
    members: list[tuple[str, Type]] = []
    while tokens.peek() != ">":
        if members:
            tokens.take(",")
        members.append(_struct_member(tokens))
    tokens.take(">")
    return struct(tuple(members))


def _struct_member(tokens: _Tokens) -> tuple[str, Type]:
    word = tokens.take()
    name = word[1:-1].replace("``", "`") if word.startswith("`") else word
    if tokens.peek() == ":":
        tokens.take(":")
    kind = _type(tokens)
    _skip_member_options(tokens)
    return name, kind


def _skip_member_options(tokens: _Tokens) -> None:
    """NOT NULL and COMMENT 'x' are Spark's to write; nested requirements live on the contract's own fields."""
    while tokens.peek().lower() in ("not", "comment"):
        tokens.take()
        tokens.take()
