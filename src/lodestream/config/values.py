"""Checking one value against its option."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lodestream.config.duration import format_duration, parse_duration
from lodestream.config.given import Given
from lodestream.config.kafka_options import KAFKA_OPTIONS
from lodestream.config.problems import Problems
from lodestream.config.schema import Option
from lodestream.config.secret import (
    REFERENCE,
    Secret,
    fill_references,
    holds_password,
    references,
    sounds_secret,
)

_MEMORY = re.compile(r"[1-9]\d*[kmgt]", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_EXAMPLE = {
    "name": '"lode"',
    "text": '"..."',
    "integer": "4",
    "duration": '"1 s"',
    "memory": '"900m"',
    "settings": "a table of names and values",
}


def resolve(given: Given, environ: Mapping[str, str]) -> Given:
    """The value with its ${env:NAME} references filled; KeyError(NAME) when a variable is not set."""
    if not isinstance(given.value, str) or not references(given.value):
        return given
    filled: object = fill_references(given.value, environ)
    if given.setting:
        filled = Secret(str(filled))
    return Given(given.option, given.setting, filled, given.origin, given.place, textual=True)


def check(given: Given, problems: Problems) -> object | None:
    """The value in the type of its option, or None and a problem."""
    if given.setting:
        return _check_setting(given, problems)
    try:
        return _convert(given.option, given.value, given.textual, bare=given.origin == "argument")
    except ValueError as error:
        problems.add(given.place, f"{given.key}: {error}", fix=_example(given))
        return None


def check_secrecy(given: Given, problems: Problems) -> bool:
    """Whether the value may stand where it stands: secrets come from the environment only."""
    if given.textual or not isinstance(given.value, str):
        return True
    if given.setting and sounds_secret(given.setting):
        plain = REFERENCE.sub("", given.value).strip() == given.value.strip() and given.value != ""
    else:
        plain = holds_password(given.value)
    if plain:
        problems.add(
            given.place,
            f"{given.key} holds a secret in plain text",
            why="a secret in a file ends up in version control and logs",
            fix=f'put it in an environment variable and write "${{env:{_variable_for(given)}}}"',
        )
    return not plain


def _variable_for(given: Given) -> str:
    return re.sub(r"\W+", "_", given.setting or given.key).upper()


def _check_setting(given: Given, problems: Problems) -> object | None:
    name = given.setting or ""
    if given.option.key == "kafka.options" and name not in KAFKA_OPTIONS:
        problems.unknown(given.place, "Kafka option", name, KAFKA_OPTIONS)
        return None
    value = given.value
    if isinstance(value, bool):
        value = str(value).lower()
    if isinstance(value, int | float):
        value = str(value)
    if not isinstance(value, str | Secret):
        problems.add(given.place, f"{given.key} is {_type(value)}", fix="write a string, a number or true/false")
        return None
    return Secret(value) if isinstance(value, str) and sounds_secret(name) else value


def _convert(option: Option, value: object, textual: bool, bare: bool) -> object:
    match option.kind:
        case "integer":
            return _integer(option, value, textual)
        case "duration":
            return _duration(option, value, bare)
        case "settings":
            raise ValueError(f"is {_type(value)}, not a table")
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"is {_type(value)}, not a string" if not isinstance(value, str) else "is empty")
    if option.choices and value not in option.choices:
        raise ValueError(f'"{value}" is not one of {", ".join(option.choices)}')
    if option.kind == "name" and not _NAME.fullmatch(value):
        raise ValueError(f'"{value}" is not a name that SQL can use unquoted')
    if option.kind == "memory" and not _MEMORY.fullmatch(value):
        raise ValueError(f'"{value}" is not an amount of memory')
    return value


def _integer(option: Option, value: object, textual: bool) -> int:
    if textual and isinstance(value, str) and re.fullmatch(r"\s*-?\d[\d_]*\s*", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"is {_type(value)}, not a whole number")
    if value < option.least:
        raise ValueError(f"{value} is less than {option.least:g}")
    return value


def _duration(option: Option, value: object, bare: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"is {_type(value)}, not a duration")
    if not isinstance(value, str) and not bare:
        raise ValueError(f"{value} has no unit")
    seconds = parse_duration(value) if isinstance(value, str) else float(value)
    if seconds < option.least:
        raise ValueError(f"{value} is less than {format_duration(option.least)}")
    return seconds


def _example(given: Given) -> str:
    option = given.option
    if option.choices:
        return f"write one of {', '.join(option.choices)}"
    if given.origin == option.variable:
        return f"set {option.variable}={_EXAMPLE[option.kind]}"
    return f"write {option.key.rpartition('.')[2]} = {_EXAMPLE[option.kind]}"


def _type(value: object) -> str:
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "a table",
    }
    shown = f" ({value})" if isinstance(value, bool | int | float) else ""
    return names.get(type(value), f"a {type(value).__name__}") + shown
