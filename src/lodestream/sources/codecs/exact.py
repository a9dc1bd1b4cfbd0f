"""A parsed value as a value of the declared type, exactly or not at all: never a silent null, never a bent number."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from lodestream.contracts.types import INTEGRAL, Type
from lodestream.sources.codecs import moments
from lodestream.sources.codecs.codec import BrokenRow
from lodestream.sources.codecs.shape import Column, Shape

SHOWN = 40
_MOST_REASONS = 5
_MOST_DIGITS = 1000
_FLOAT_MAX = 3.4028235677973366e38  # from here on the nearest float is infinite


class Real(str):
    """A number written with a fraction, an exponent or very many digits: text until its type is known."""

    __slots__ = ()


class Repeated:
    """A name that was given twice: which value is meant is not for us to guess."""


Problem = Callable[[str, str], None]


def read_row(event: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """The columns found in one event. Raises BrokenRow with every field that does not fit, not only the first."""
    reasons: list[str] = []

    def problem(path: str, what: str) -> None:
        reasons.append(f"{path} {what}")

    row = {column.name: _column(event, column, problem) for column in shape.columns}
    if reasons:
        more = len(reasons) - _MOST_REASONS
        raise BrokenRow("; ".join(reasons[:_MOST_REASONS]) + (f"; and {more} more" if more > 0 else ""))
    return row


def _column(event: dict[str, Any], column: Column, problem: Problem) -> Any:
    given = _given(event, column.sources, column.any_case, problem)
    if given is None:
        return None
    if given is Repeated:
        problem(column.name, "is given twice")
        return None
    if column.scalar_text:
        return _scalar_text(given, column.name, problem)
    return _value(given, column.type, column.name, column, problem)


def _given(event: dict[str, Any], names: tuple[str, ...], any_case: bool, problem: Problem) -> Any:
    """The one value that goes by one of the names, or None; a name in another case is a problem unless allowed."""
    exact = [name for name in names if name in event]
    folded = {fold(name) for name in names} if any_case or not exact else set()
    strangers = [name for name in event if name not in exact and fold(name) in folded]
    if strangers and not any_case:
        problem(names[0], f"is spelt {shorten(strangers[0])} in the event")
        return None
    found = [event[name] for name in (*exact, *strangers)]
    return Repeated if len(found) > 1 else found[0] if found else None


def fold(name: str) -> str:
    """Lower case for ASCII letters only, so that every engine folds alike."""
    return name.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _value(given: Any, kind: Type, path: str, column: Column, problem: Problem) -> Any:
    if given is None:
        return None
    if given is Repeated:
        problem(path, "is given twice")
        return None
    try:
        match kind.name:
            case "struct":
                return _struct(given, kind, path, column, problem)
            case "array":
                return _array(given, kind, path, column, problem)
            case "map":
                return _map(given, kind, path, column, problem)
        return _SCALARS[kind.name](given, kind, column)
    except BrokenRow as detail:
        problem(path, f"is {shown(given)}, which {detail}: not {article(kind)}")
    except (ValueError, TypeError, OverflowError, InvalidOperation):
        problem(path, f"is {shown(given)}, not {article(kind)}")
    return None


def _struct(given: Any, kind: Type, path: str, column: Column, problem: Problem) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise TypeError
    found = {}
    for name, member in kind.members:
        inside = _given(given, (name,), column.any_case, lambda at, what: problem(f"{path}.{at}", what))
        found[name] = _value(inside, member, f"{path}.{name}", column, problem)
    return found


def _array(given: Any, kind: Type, path: str, column: Column, problem: Problem) -> list[Any]:
    if not isinstance(given, list):
        raise TypeError
    return [_value(item, kind.element, f"{path}[{place}]", column, problem) for place, item in enumerate(given)]


def _map(given: Any, kind: Type, path: str, column: Column, problem: Problem) -> list[tuple[Any, Any]]:
    if not isinstance(given, dict) or kind.key.name != "string":
        raise TypeError
    for key in given:
        if not _is_text(key):
            problem(f"{path}[{shorten(key)}]", "has a name that is not text")
    return [
        (key, _value(value, kind.value, f"{path}[{shorten(key)}]", column, problem)) for key, value in given.items()
    ]


def _is_text(name: str) -> bool:
    """False for half of a surrogate pair, which JSON can spell and UTF-8 cannot."""
    try:
        return bool(name.encode()) or not name
    except UnicodeEncodeError:
        return False


def _scalar_text(given: Any, path: str, problem: Problem) -> str | None:
    if isinstance(given, dict | list):
        problem(path, f"is {shown(given)}, not a plain value")
        return None
    return given if type(given) is str else plain_text(given)


def plain_text(given: Any) -> str:
    """A scalar as JSON spells it."""
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, float) and not math.isfinite(given):
        return "NaN" if math.isnan(given) else "Infinity" if given > 0 else "-Infinity"
    return str(given)


def _boolean(given: Any, _kind: Type, _column: Column) -> bool:
    if not isinstance(given, bool):
        raise TypeError
    return given


def _whole(given: Any, kind: Type, _column: Column) -> int:
    half = 1 << (INTEGRAL[kind.name] - 1)
    if type(given) is not int or not -half <= given < half:
        raise ValueError
    return given


def _real(given: Any, kind: Type, column: Column) -> float:
    if type(given) not in (int, float, Real):
        raise TypeError
    number = float(given)
    finite = math.isfinite(number) and not (kind.name == "float" and abs(number) >= _FLOAT_MAX)
    if not finite and not (column.non_finite and type(given) is float):
        raise OverflowError
    return number


def _decimal(given: Any, kind: Type, _column: Column) -> Decimal:
    if type(given) not in (int, Real, Decimal):
        raise TypeError
    if isinstance(given, Real) and len(given) > _MOST_DIGITS:
        raise OverflowError
    number, scale = Decimal(given), kind.scale or 0
    if number.is_zero():
        return Decimal(0)
    if not number.is_finite() or number.adjusted() >= (kind.precision or 0) - scale:
        raise OverflowError
    # normalize() rounds to 28 digits, so trailing zeros are counted by hand.
    digits, exponent = number.as_tuple().digits, int(number.as_tuple().exponent)
    zeros = len(digits) - len(str(int("".join(map(str, digits)))).rstrip("0").zfill(1))
    if -(exponent + zeros) > scale:
        raise BrokenRow(f"has more than {scale} decimal places")
    return number


def _text(given: Any, _kind: Type, _column: Column) -> str:
    if type(given) is not str:
        raise TypeError
    given.encode()  # a lone surrogate is no text
    return given


def _binary(given: Any, _kind: Type, _column: Column) -> bytes:
    if type(given) is bytes:
        return given
    if type(given) is not str:
        raise TypeError
    return base64.b64decode(given, validate=True)


def _date(given: Any, _kind: Type, _column: Column) -> date:
    if type(given) is date:
        return given
    return moments.day(_text(given, _kind, _column))


def _wall_time(given: Any, kind: Type, column: Column) -> datetime:
    if isinstance(given, datetime) and given.tzinfo is None:
        return given
    return moments.wall_time(_text(given, kind, column))


def _instant(given: Any, kind: Type, column: Column) -> datetime:
    if isinstance(given, datetime) and given.tzinfo is not None:
        return given.astimezone(UTC)
    return moments.instant(_text(given, kind, column))


_SCALARS: dict[str, Callable[[Any, Type, Column], Any]] = {
    "boolean": _boolean, "tinyint": _whole, "smallint": _whole, "int": _whole, "bigint": _whole,
    "float": _real, "double": _real, "decimal": _decimal, "string": _text, "varchar": _text, "char": _text,
    "binary": _binary, "date": _date, "timestamp": _instant, "timestamp_ntz": _wall_time,
}  # fmt: skip


def article(kind: Type) -> str:
    name = str(kind) if not kind.nested else {"struct": "object", "array": "array", "map": "object"}[kind.name]
    return f"an {name}" if name[0] in "aeio" else f"a {name}"


def shown(given: Any) -> str:
    """A value as a reason shows it, short enough to read and to store."""
    if isinstance(given, dict | list):
        return "an object" if isinstance(given, dict) else "an array"
    if type(given) is str:
        return shorten(given)
    if isinstance(given, bytes):
        return f"{len(given)} bytes"
    text = plain_text(given)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def shorten(text: str) -> str:
    clean = text[: SHOWN + 1].encode("utf-8", "replace").decode()
    return f"'{clean}'" if len(clean) <= SHOWN else f"'{clean[:SHOWN]}…'"
