"""A parsed value as a value of the declared type, exactly or not at all: never a silent null, never a bent number."""

from __future__ import annotations

from collections.abc import Callable
from decimal import InvalidOperation
from typing import Any

from lodestream.contracts.types import Type
from lodestream.sources.codecs.codec import BrokenRow
from lodestream.sources.codecs.scalars import SCALARS, article, plain_text, shorten, shown
from lodestream.sources.codecs.shape import Column, Shape

_MOST_REASONS = 5


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
        return _scalar_text(given, column, problem)
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
        return SCALARS[kind.name](given, kind, column)
    except BrokenRow as detail:
        problem(path, f"is {_shown(given, column)}, which {detail}: not {article(kind)}")
    except (ValueError, TypeError, OverflowError, InvalidOperation):
        problem(path, f"is {_shown(given, column)}, not {article(kind)}")
    return None


def _shown(given: Any, column: Column) -> str:
    return "a hidden value" if column.hidden else shown(given)


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
    places = {key: f"{path}[{'hidden' if column.hidden else shorten(key)}]" for key in given}
    for key, place in places.items():
        if not _is_text(key):
            problem(place, "has a name that is not text")
    return [(key, _value(value, kind.value, places[key], column, problem)) for key, value in given.items()]


def _is_text(name: str) -> bool:
    """False for half of a surrogate pair, which JSON can spell and UTF-8 cannot."""
    try:
        return bool(name.encode()) or not name
    except UnicodeEncodeError:
        return False


def _scalar_text(given: Any, column: Column, problem: Problem) -> str | None:
    if isinstance(given, dict | list) or (type(given) is str and not _is_text(given)):
        problem(column.name, f"is {_shown(given, column)}, not a plain value")
        return None
    return given if type(given) is str else plain_text(given)
