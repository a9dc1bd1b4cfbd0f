"""How the limits of a field differ: tightened (fewer values may come), loosened (more), or both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lodestream.contracts.model import Limits

Tuned = tuple[str, str, bool, bool]  # kind, what, tightened, loosened


def compare_limits(old: Limits, new: Limits) -> Iterator[Tuned]:
    yield from _values(old, new)
    for name, upper in (("minimum", False), ("maximum", True)):
        before, after = _bound(old, name), _bound(new, name)
        if before != after:
            yield _moved(name, before, after, _order(before, after, upper))
    for name in ("min_length", "max_length", "min_items", "max_items"):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            yield _moved(name.replace("_", " "), before, after, _order(before, after, name.startswith("max")))
    for name in ("pattern", "multiple_of", "unique_items"):
        before, after = getattr(old, name) or None, getattr(new, name) or None
        if before != after:
            yield _moved(name.replace("_", " "), before, after, (after is not None, before is not None))


def _values(old: Limits, new: Limits) -> Iterator[Tuned]:
    added = [value for value in new.values if value not in old.values]
    gone = [value for value in old.values if value not in new.values]
    if old.values and not new.values:
        yield "values", "any value may come, the list is gone", False, True
    elif new.values and not old.values:
        yield "values", f"only {_listed(list(new.values))} may come", True, False
    else:
        if added:
            yield "values", f"{_listed(added)} may come now", False, True
        if gone:
            yield "values", f"{_listed(gone)} may no longer come", True, False


def _listed(values: list[Any]) -> str:
    return ", ".join(str(value) for value in values)


def _bound(limits: Limits, name: str) -> tuple[Any, bool] | None:
    value = getattr(limits, name)
    return None if value is None else (value, getattr(limits, f"exclusive_{name}"))


def _order(before: Any, after: Any, upper: bool) -> tuple[bool, bool]:
    """Whether the move tightens or loosens. What cannot be compared counts as both."""
    if before is None or after is None:
        return before is None, after is None
    try:
        rises = before < after
    except TypeError:
        return True, True
    # An exclusive bound sorts above the same inclusive one: tighter below, looser as a maximum would be wrong.
    if upper and isinstance(before, tuple) and before[0] == after[0]:
        return bool(after[1]), not after[1]
    return (not rises, rises) if upper else (rises, not rises)


def _moved(name: str, before: Any, after: Any, order: tuple[bool, bool]) -> Tuned:
    return name, f"{name} changed from {_said(before)} to {_said(after)}", *order


def _said(bound: Any) -> str:
    if isinstance(bound, tuple):
        return f"{bound[0]} (not included)" if bound[1] else str(bound[0])
    return "none" if bound is None else str(bound)
