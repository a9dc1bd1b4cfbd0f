"""How two versions read the same input: which equal bytes give other values, and which are taken or refused now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lodestream.contracts.limit_changes import Tuned
from lodestream.contracts.model import Field
from lodestream.contracts.types import parse_type

# What a contract may allow, and what then comes that did not come before.
_ALLOWED = {
    "rounding": ("values with more decimals come rounded", "values with more decimals are refused, not rounded"),
    "coerce": ("values of other types are converted", "values of other types are refused, not converted"),
    "any_case": ("field names match in any case", "field names match in their own case only"),
    "non_finite": ("NaN and infinities may come", "NaN and infinities are refused"),
}


def bent_values(old: Field, new: Field) -> Iterator[tuple[str, str]]:
    """Changes under which equal input gives other values: the kind of each, and what it says."""
    for kind, before, after in (
        ("zone", _zone(old), _zone(new)),
        ("epoch", old.reading.epoch, new.reading.epoch),
    ):
        # A column that begins to show UTC because counts are read now has one change, not two.
        implied = kind == "zone" and before is None and new.reading.zone is None
        if before != after and not implied:
            yield kind, _bent(kind, before or "none", after or "none")
    # Without a format, ISO 8601 is read: 2024-01-02 is another day under yyyy-dd-MM.
    if old.reading.format != new.reading.format:
        yield "format", _bent("format", old.reading.format or "ISO 8601", new.reading.format or "ISO 8601")
    if _source_moved(old, new):
        yield "source", _bent("source", old.source_name, new.source_name)


def taken_values(old: Field, new: Field) -> Iterator[Tuned]:
    """Changes under which other input is taken, with the values that come as they are."""
    for word, (now, no_longer) in _ALLOWED.items():
        before, after = bool(getattr(old.reading, word)), bool(getattr(new.reading, word))
        if before != after:
            yield "loosened" if after else "tightened", now if after else no_longer, before, after


def _bent(word: str, before: Any, after: Any) -> str:
    return f"{word} changed from {before} to {after}, so equal input gives other values"


def _zone(field: Field) -> str | None:
    """Counts since 1970 are read in UTC where no zone is given and the column shows a clock's time."""
    clock = field.reading.epoch is not None and parse_type(field.type).name != "timestamp"
    return field.reading.zone or ("UTC" if clock else None)


def _source_moved(old: Field, new: Field) -> bool:
    """Whether the value is taken from another field of the event; an alias reads on what came by the old name."""
    return old.source_name != new.source_name and old.source_name not in new.aliases
