"""Partition transforms as Iceberg knows them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from lodestream.config import nearest
from lodestream.pipeline.location import Location, declaration_error

Transform = Literal["identity", "years", "months", "days", "hours", "bucket", "truncate"]

_TIME: dict[str, Transform] = {"years": "years", "months": "months", "days": "days", "hours": "hours"}
_SIZED: dict[str, Transform] = {"bucket": "bucket", "truncate": "truncate"}
_COLUMN = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_CALL = re.compile(rf"(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?({_COLUMN})\s*\)")
_FORMS = "a column, years(c), months(c), days(c), hours(c), bucket(n, c) or truncate(n, c)"


@dataclass(frozen=True, slots=True)
class Partition:
    """One field of a partition spec."""

    transform: Transform
    column: str
    size: int | None = None

    def __str__(self) -> str:
        if self.transform == "identity":
            return self.column
        return f"{self.transform}({f'{self.size}, ' if self.size else ''}{self.column})"


def parse_partition(text: str) -> Partition:
    """A partition field from its text; ValueError says what is wrong."""
    text = text.strip()
    if re.fullmatch(_COLUMN, text):
        return Partition("identity", text)
    match = _CALL.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is no partition transform')
    name, size, column = match[1].lower(), match[2], match[3]
    if name in _TIME and size is None:
        return Partition(_TIME[name], column)
    if name in _SIZED and size is not None and int(size) > 0:
        return Partition(_SIZED[name], column, int(size))
    if name in _TIME or name in _SIZED:
        raise ValueError(f'"{text}" has the wrong arguments')
    close = nearest(name, [*_TIME, *_SIZED])
    raise ValueError(f'unknown partition transform "{name}"' + (f": did you mean {close}?" if close else ""))


def check_partitions(given: str | tuple[str, ...], location: Location) -> tuple[str, ...]:
    """The partition fields in their plain spelling."""
    texts = (given,) if isinstance(given, str) else tuple(given)
    try:
        parsed = [parse_partition(text) for text in texts]
    except (ValueError, AttributeError) as error:
        raise declaration_error(location, f"partition_by: {error}", fix=f"write {_FORMS}") from error
    timed = [one.column for one in parsed if one.transform in _TIME]
    twice = next((column for column in timed if timed.count(column) > 1), None)
    if twice:
        raise declaration_error(location, f"partition_by: {twice} has two time transforms", fix="keep the finer one")
    return tuple(str(one) for one in parsed)
