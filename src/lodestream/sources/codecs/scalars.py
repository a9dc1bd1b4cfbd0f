"""Plain values of each type: what is taken as one, and how a value is shown that is not."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from lodestream.contracts.types import INTEGRAL, Type
from lodestream.sources.codecs import moments
from lodestream.sources.codecs.codec import BrokenRow
from lodestream.sources.codecs.shape import Column

SHOWN = 40
_MOST_DIGITS = 1000
_HALF_UP = Context(prec=_MOST_DIGITS, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX)
_FLOAT_MAX = 3.4028235677973366e38  # from here on the nearest float is infinite


class Real(str):
    """A number written with a fraction, an exponent or very many digits: text until its type is known."""

    __slots__ = ()


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


def _decimal(given: Any, kind: Type, column: Column) -> Decimal:
    # A float stands for many decimals: only where the contract rounds is it taken, as the shortest one.
    if type(given) not in ((int, Real, Decimal, float) if column.half_up else (int, Real, Decimal)):
        raise TypeError
    if isinstance(given, Real) and len(given) > _MOST_DIGITS:
        raise OverflowError
    number, scale = _exact(repr(given) if isinstance(given, float) else given), kind.scale or 0
    if number.is_zero():
        return Decimal(0)
    whole = (kind.precision or 0) - scale
    if not number.is_finite() or number.adjusted() >= whole:
        raise OverflowError
    if column.half_up:
        number = number.quantize(Decimal(1).scaleb(-scale), context=_HALF_UP)
        if number.adjusted() >= whole and not number.is_zero():
            raise OverflowError
        return number
    # normalize() rounds to 28 digits, so trailing zeros are counted by hand.
    digits, exponent = number.as_tuple().digits, int(number.as_tuple().exponent)
    zeros = len(digits) - len(str(int("".join(map(str, digits)))).rstrip("0").zfill(1))
    if -(exponent + zeros) > scale:
        raise BrokenRow(f"has more than {scale} decimal places")
    # Arrow makes a zero of a number with hundreds of zeros after its last digit.
    return number.quantize(Decimal(1).scaleb(-scale), context=_HALF_UP)


def _exact(given: Any) -> Decimal:
    """All digits. An exponent that no Decimal holds says no more than seventeen nines do."""
    try:
        return Decimal(given)
    except InvalidOperation:
        return Decimal(re.sub("[0-9]+$", "9" * 17, given))


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
    if len(given) % 4:
        raise ValueError  # Python overlooks padding that is too much
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


SCALARS: dict[str, Callable[[Any, Type, Column], Any]] = {
    "boolean": _boolean, "tinyint": _whole, "smallint": _whole, "int": _whole, "bigint": _whole,
    "float": _real, "double": _real, "decimal": _decimal, "string": _text, "varchar": _text, "char": _text,
    "binary": _binary, "date": _date, "timestamp": _instant, "timestamp_ntz": _wall_time,
}  # fmt: skip


def plain_text(given: Any) -> str:
    """A scalar as JSON spells it."""
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, float) and not math.isfinite(given):
        return "NaN" if math.isnan(given) else "Infinity" if given > 0 else "-Infinity"
    return str(given)


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
