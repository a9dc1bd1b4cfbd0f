"""What values a field may take. Each limit is declared once, with what every form of a contract asks of it.

The words of ODCS, reading and writing them, the check of a contract, the comparison of two versions and the SQL against
a row loop over these declarations: a new limit is one entry of `Limits`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

from lodestream.contracts import quoting
from lodestream.contracts.types import TEMPORAL, Type

# How its value is written in a document.
Spelling = Literal["whole", "positive", "text", "flag", "bound", "exclusive"]
# What a higher value does: a floor then lets fewer values pass, a ceiling more; the others have no order.
Order = Literal["floor", "ceiling", "none", "list"]
Broken = Callable[[Any, str, str], tuple[str, str]]
Unfit = Callable[[Any, Type], Iterator[tuple[str, str | None]]]


@dataclass(frozen=True, slots=True)
class Limit:
    """One way to limit values.

    `odcs` is its word among the logicalTypeOptions of the logical types `of`. `broken` takes the limit, SQL for the
    value and the name of its type, and gives the reason and a condition that is true of a wrong value. `unfit` says
    what is wrong with the limit itself. A bound names in `exclusive` the flag that leaves the bound itself out; both
    functions then get the pair.
    """

    name: str
    default: Any
    odcs: str | None
    of: tuple[str, ...]
    spelling: Spelling
    order: Order
    broken: Broken | None
    unfit: Unfit | None
    exclusive: str | None

    def stated(self, limits: Limits) -> Any:
        """What the limits say of it; None when they say nothing."""
        value = getattr(limits, self.name)
        if value == self.default:
            return None
        return (value, getattr(limits, self.exclusive)) if self.exclusive else value


def limit(
    default: Any,
    odcs: str | None = None,
    *,
    of: tuple[str, ...] = (),
    spelling: Spelling = "text",
    order: Order = "none",
    broken: Broken | None = None,
    unfit: Unfit | None = None,
    exclusive: str | None = None,
) -> Any:
    """A field of `Limits` that knows what it is in every form of a contract."""
    about = {"odcs": odcs, "of": of, "spelling": spelling, "order": order}
    return field(default=default, metadata={**about, "broken": broken, "unfit": unfit, "exclusive": exclusive})


def _not_listed(values: Any, value: str, kind: str) -> tuple[str, str]:
    listed = ", ".join(str(known) for known in values)
    return f"is not one of {listed}", f"{value} NOT IN {quoting.in_list(values, kind)}"


def _below(bound: Any, value: str, kind: str) -> tuple[str, str]:
    low, excluded = bound
    word, wrong = ("not above", "<=") if excluded else ("below", "<")
    return f"is {word} {low}", f"{value} {wrong} {quoting.literal(low, kind)}"


def _above(bound: Any, value: str, kind: str) -> tuple[str, str]:
    high, excluded = bound
    word, wrong = ("not below", ">=") if excluded else ("above", ">")
    return f"is {word} {high}", f"{value} {wrong} {quoting.literal(high, kind)}"


def _uneven(step: Any, value: str, _kind: str) -> tuple[str, str]:
    return f"is not a multiple of {quoting.number(step)}", f"{value} % {quoting.number(step)} <> 0"


def _shorter(least: Any, value: str, kind: str) -> tuple[str, str]:
    return f"is shorter than {least}", f"{_length(value, kind)} < {least}"


# A quoted piece, an escape, a class of characters (another one may stand inside), or a single character.
_PATTERN_PARTS = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|\[[^\]]*\]|[^\]\\])*\]|.", re.DOTALL)


def _longer(most: Any, value: str, kind: str) -> tuple[str, str]:
    return f"is longer than {most}", f"{_length(value, kind)} > {most}"


def _length(value: str, kind: str) -> str:
    return f"octet_length({value})" if kind == "binary" else f"char_length({value})"


def _unlike(pattern: Any, value: str, _kind: str) -> tuple[str, str]:
    return f"does not match {pattern}", f"NOT ({value} RLIKE {quoting.text(_to_the_end(pattern))})"


def _to_the_end(pattern: str) -> str:
    """`$` is the end of the text, as in JSON Schema; Java's also stands before a last line break."""
    if re.search(r"\(\?[a-zA-Z]*m", pattern):  # every line has an end
        return pattern
    return "".join(r"\z" if part == "$" else part for part in _PATTERN_PARTS.findall(pattern))


def _fewer(least: Any, value: str, _kind: str) -> tuple[str, str]:
    return f"has fewer than {least} items", f"size({value}) < {least}"


def _more(most: Any, value: str, _kind: str) -> tuple[str, str]:
    return f"has more than {most} items", f"size({value}) > {most}"


def _repeated(_unique: Any, value: str, _kind: str) -> tuple[str, str]:
    return "has an item twice", f"size(array_distinct({value})) <> size({value})"


def _no_bound(bound: Any, kind: Type) -> Iterator[tuple[str, str | None]]:
    value, _ = bound
    if not (kind.numeric or kind.name in TEMPORAL):
        yield f"minimum and maximum do not fit a {kind}", "use a rule"
    if kind.numeric and isinstance(value, str):
        yield f"the limit {value!r} is not a number", None
    if kind.name in TEMPORAL and not _is_moment(value):
        yield f"the limit {value!r} is not a date or time", 'write it as "2024-01-31" or "2024-01-31 12:00:00"'


def _is_moment(bound: object) -> bool:
    try:
        return isinstance(bound, str) and bool(datetime.fromisoformat(bound))
    except ValueError:
        return False


def _no_pattern(pattern: Any, _kind: Type) -> Iterator[tuple[str, str | None]]:
    # Java's \p{...} classes are unknown to Python: any letter stands in for them.
    try:
        re.compile(re.sub(r"\\[pP](\{\^?\w+(=\w+)?\}|\w)", "a", pattern))
    except re.error:
        yield f"the pattern {pattern} is not a regular expression", None


_NUMBERS = ("integer", "number")
_ORDERED = (*_NUMBERS, "date", "timestamp", "time")
_TEXT, _LIST = ("string",), ("array",)


@dataclass(frozen=True, slots=True)
class Limits:
    """What values a field may take. A null value breaks none of these: that is `required`.

    A value that breaks several is refused with the reasons in this order.
    """

    # ODCS has the list of values among the quality rules: odcs_rules.py reads it.
    values: tuple[Any, ...] = limit((), order="list", broken=_not_listed)
    minimum: int | float | str | None = limit(
        None, "minimum", of=_ORDERED, spelling="bound", order="floor",
        broken=_below, unfit=_no_bound, exclusive="exclusive_minimum",
    )  # fmt: skip
    maximum: int | float | str | None = limit(
        None, "maximum", of=_ORDERED, spelling="bound", order="ceiling",
        broken=_above, unfit=_no_bound, exclusive="exclusive_maximum",
    )  # fmt: skip
    exclusive_minimum: bool = limit(False, "exclusiveMinimum", of=_ORDERED, spelling="exclusive")
    exclusive_maximum: bool = limit(False, "exclusiveMaximum", of=_ORDERED, spelling="exclusive")
    multiple_of: int | float | None = limit(None, "multipleOf", of=_NUMBERS, spelling="positive", broken=_uneven)
    pattern: str | None = limit(None, "pattern", of=_TEXT, broken=_unlike, unfit=_no_pattern)
    min_length: int | None = limit(None, "minLength", of=_TEXT, spelling="whole", order="floor", broken=_shorter)
    max_length: int | None = limit(None, "maxLength", of=_TEXT, spelling="whole", order="ceiling", broken=_longer)
    min_items: int | None = limit(None, "minItems", of=_LIST, spelling="whole", order="floor", broken=_fewer)
    max_items: int | None = limit(None, "maxItems", of=_LIST, spelling="whole", order="ceiling", broken=_more)
    unique_items: bool = limit(False, "uniqueItems", of=_LIST, spelling="flag", broken=_repeated)


DECLARED: Mapping[str, Limit] = {one.name: Limit(one.name, one.default, **one.metadata) for one in fields(Limits)}


def limits_by_word() -> dict[str, Limit]:
    """The limits that ODCS has a word for among the logicalTypeOptions."""
    return {one.odcs: one for one in DECLARED.values() if one.odcs}


def judging() -> Iterator[Limit]:
    """The limits that a value can break; a flag beside a bound breaks nothing alone."""
    return (one for one in DECLARED.values() if one.broken)
