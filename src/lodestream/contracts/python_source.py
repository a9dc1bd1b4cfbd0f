"""A contract as the text of a Python class; running the text gives an equal contract."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from dataclasses import Field as DataclassField
from typing import Any

from lodestream.contracts.model import Contract, Field, duration_text
from lodestream.contracts.record import ABOUT
from lodestream.contracts.types import parse_type

_IMPORTS = """from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from lodestream.contracts import Field, Limits, Masking, Reading, Record, Rule, Threshold, column
"""
_PYTHON = {
    "boolean": "bool", "tinyint": "int", "smallint": "int", "int": "int", "bigint": "int", "float": "float",
    "double": "float", "decimal": "Decimal", "string": "str", "binary": "bytes", "date": "date",
    "timestamp": "datetime", "timestamp_ntz": "datetime",
}  # fmt: skip
_DEFAULT_TYPE = {"str": "string", "int": "bigint", "float": "double", "bool": "boolean", "bytes": "binary",
                 "date": "date", "datetime": "timestamp"}  # fmt: skip


def python_source(contract: Contract, class_name: str | None = None) -> str:
    """A module with one Record class."""
    name = class_name or _class_name(contract.name)
    lines = [*_heading(contract), *_columns(contract), *_rules(contract)]
    body = "\n".join(f"    {line}" if line else "" for line in lines)
    return f"{_IMPORTS}\n\nclass {name}(Record):\n{body}\n"


def _class_name(text: str) -> str:
    word = "".join(part.capitalize() for part in "".join(c if c.isalnum() else " " for c in text).split())
    return word if word.isidentifier() and not keyword.iskeyword(word) else "Stated"


def _heading(contract: Contract) -> Iterator[str]:
    if contract.description is not None and _is_plain_docstring(contract.description):
        yield f'"""{contract.description}"""'
        yield ""
    elif contract.description is not None:
        yield f"description = {contract.description!r}"
    yield f"name = {contract.name!r}"
    yield f"version = {contract.version!r}"
    for attribute in ("id", "dataset"):
        if getattr(contract, attribute) != contract.name:
            yield f"{attribute} = {getattr(contract, attribute)!r}"
    if contract.status != "active":
        yield f"status = {contract.status!r}"
    for attribute in ("owner", "keys", "event_time"):
        if getattr(contract, attribute):
            yield f"{attribute} = {getattr(contract, attribute)!r}"
    for attribute in ("lateness", "freshness"):
        if getattr(contract, attribute) is not None:
            yield f"{attribute} = {duration_text(getattr(contract, attribute))!r}"
    if contract.limit is not None:
        yield f"limit = {str(contract.limit)!r}"
    if contract.extras:
        yield f"extras = {contract.extras!r}"


def _is_plain_docstring(text: str) -> bool:
    return bool(text) and '"' not in text and "\\" not in text and text.isprintable() and inspect.cleandoc(text) == text


def _columns(contract: Contract) -> Iterator[str]:
    yield ""
    taken: set[str] = set(ABOUT) | {"contract", "mro"}
    for number, field in enumerate(contract.fields):
        attribute = field.name if _is_attribute(field.name, taken) else f"column_{number}"
        while attribute in taken:
            attribute += "_"
        taken.add(attribute)
        yield f"{attribute}: {_annotation(field)} = column({', '.join(_arguments(field, attribute))})"


def _is_attribute(name: str, taken: set[str]) -> bool:
    plain = name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
    return plain and name not in taken and not name.startswith("_")


def _annotation(field: Field) -> str:
    word = _PYTHON.get(parse_type(field.type).name, "Any")
    return word if field.required else f"{word} | None"


def _arguments(field: Field, attribute: str) -> Iterator[str]:
    word = _PYTHON.get(parse_type(field.type).name, "Any")
    if _DEFAULT_TYPE.get(word) != field.type:
        yield repr(field.type)
    if attribute != field.name:
        yield f"name={field.name!r}"
    for found in fields(Field):
        if found.name not in ("name", "type", "required", "limits", "reading", "line"):
            yield from _given(found, getattr(field, found.name))
    for part in (field.limits, field.reading):
        for found in fields(type(part)):
            yield from _given(found, getattr(part, found.name))


def _given(found: DataclassField[Any], value: Any) -> Iterator[str]:
    if value != _default(found):
        yield f"{found.name}={source(value)}"


def _default(found: DataclassField[Any]) -> Any:
    if found.default is not MISSING:
        return found.default
    return found.default_factory() if found.default_factory is not MISSING else MISSING


def source(value: Any) -> str:
    """Like repr, without the attributes that have their default."""
    if is_dataclass(value) and not isinstance(value, type):
        given = [text for found in fields(value) if found.compare for text in _given(found, getattr(value, found.name))]
        return f"{type(value).__name__}({', '.join(given)})"
    if isinstance(value, tuple):
        inner = ", ".join(source(part) for part in value)
        return f"({inner},)" if value else "()"
    return repr(value)


def _rules(contract: Contract) -> Iterator[str]:
    if contract.rules:
        yield ""
        yield "rules = ["
        yield from (f"    {source(rule)}," for rule in contract.rules)
        yield "]"
