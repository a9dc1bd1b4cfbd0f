"""Names and values as Spark SQL text that cannot break out of their place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal


def name(text: str) -> str:
    """A column name in backticks."""
    return "`" + text.replace("`", "``") + "`"


def is_name(sql: str) -> bool:
    """Whether the text is one column name in backticks, and nothing else."""
    return re.fullmatch(r"`([^`]|``)+`", sql) is not None


def path(*parts: str) -> str:
    """A nested column: `a`.`b`."""
    return ".".join(name(part) for part in parts)


def text(value: str) -> str:
    """A string literal.

    `$` is written as an escape because Spark replaces `${...}` in every SQL text it parses, literals included; NUL with
    all its digits, because `\\0` and two digits behind it are one octal escape.
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024").replace("\0", "\\u0000")
    return f"'{escaped}'"


def number(value: int | float | Decimal) -> str:
    """An exact numeric literal: 0.1 is the decimal 0.1, not the nearest double."""
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise ValueError(f"{value} is not a finite number")
    return format(exact, "f")


def literal(value: object, type_name: str) -> str:
    """A literal of a field's own type."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return number(value)
    if type_name in ("date", "timestamp", "timestamp_ntz"):
        return f"{type_name.upper()}{text(_in_utc(str(value)) if type_name == 'timestamp' else str(value))}"
    return text(str(value))


def _in_utc(moment: str) -> str:
    """A contract that names no zone speaks of UTC; Spark would take the zone of its session."""
    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        return moment
    return moment if found.tzinfo else f"{found.isoformat()}Z"


def in_list(values: Sequence[object], type_name: str) -> str:
    return "(" + ", ".join(literal(value, type_name) for value in values) + ")"
