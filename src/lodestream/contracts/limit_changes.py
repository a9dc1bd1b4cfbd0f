"""How the limits of a field differ: tightened (fewer values may come), loosened (more), or both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lodestream.contracts.limits import Limits, Order, judging

Tuned = tuple[str, str, bool, bool]  # kind, what, tightened, loosened


def compare_limits(old: Limits, new: Limits) -> Iterator[Tuned]:
    for one in judging():
        before, after = one.stated(old), one.stated(new)
        if before == after:
            continue
        if one.order == "list":
            yield from _values(before or (), after or ())
        else:
            yield _moved(one.name.replace("_", " "), before, after, _order(before, after, one.order))


def _values(old: tuple[Any, ...], new: tuple[Any, ...]) -> Iterator[Tuned]:
    added = [value for value in new if value not in old]
    gone = [value for value in old if value not in new]
    if old and not new:
        yield "values", "any value may come, the list is gone", False, True
    elif new and not old:
        yield "values", f"only {_listed(list(new))} may come", True, False
    else:
        if added:
            yield "values", f"{_listed(added)} may come now", False, True
        if gone:
            yield "values", f"{_listed(gone)} may no longer come", True, False


def _listed(values: list[Any]) -> str:
    return ", ".join(str(value) for value in values)


def _order(before: Any, after: Any, order: Order) -> tuple[bool, bool]:
    """Whether the move tightens or loosens. What cannot be compared counts as both."""
    if before is None or after is None:
        return before is None, after is None
    if order == "none":
        return True, True
    try:
        rises = before < after
    except TypeError:
        return True, True
    upper = order == "ceiling"
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
