"""Partition transforms as Iceberg knows them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lodestream.config import nearest
from lodestream.pipeline.location import Location, declaration_error

Transform = Literal["identity", "years", "months", "days", "hours", "bucket", "truncate"]

_TIME: dict[str, Transform] = {"years": "years", "months": "months", "days": "days", "hours": "hours"}
_SIZED: dict[str, Transform] = {"bucket": "bucket", "truncate": "truncate"}
_COLUMN = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_CALL = re.compile(rf"(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?({_COLUMN})\s*\)")
_EXACT = (
    "string", "varchar", "char", "boolean", "tinyint", "smallint", "int", "bigint", "decimal",
    "date", "timestamp", "timestamp_ntz",
)  # fmt: skip
_BOUNDS = "years(c), months(c), days(c), hours(c) or a column"
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


def check_partitions(given: str | tuple[str, ...], location: Location, option: str = "partition_by") -> tuple[str, ...]:
    """The partition fields in their plain spelling."""
    texts = (given,) if isinstance(given, str) else tuple(given)
    try:
        parsed = [parse_partition(text) for text in texts]
    except (ValueError, AttributeError) as error:
        raise declaration_error(location, f"{option}: {error}", fix=f"write {_FORMS}") from error
    timed = [one.column for one in parsed if one.transform in _TIME]
    twice = next((column for column in timed if timed.count(column) > 1), None)
    if twice:
        raise declaration_error(location, f"{option}: {twice} has two time transforms", fix="keep the finer one")
    return tuple(str(one) for one in parsed)


def check_bound(given: str | Sequence[str], location: Location) -> tuple[str, ...]:
    """The periods of `dedupe_within` in their plain spelling."""
    found = check_partitions(given if isinstance(given, str) else tuple(given), location, "dedupe_within")
    for one in map(parse_partition, found):
        if one.transform in _SIZED:
            raise declaration_error(
                location,
                f'dedupe_within: "{one}" is no period',
                why="rows with the same key must be told to belong together by a time or a value",
                fix=f"write {_BOUNDS}",
            )
    return found


def misfit(partition: Partition, kind: str) -> str | None:
    """Why Iceberg cannot partition a column of this type so; None when it can, or when that is not known."""
    plain = kind.lower().partition("(")[0].partition("<")[0].strip()
    if partition.transform in _TIME.values():
        dates = () if partition.transform == "hours" else ("date",)
        fitting: tuple[str, ...] = ("timestamp", "timestamp_ntz", *dates)
    elif partition.transform == "truncate":
        fitting = ("string", "varchar", "char", "binary", "tinyint", "smallint", "int", "bigint", "decimal")
    else:
        return None
    takes = f"{partition.transform} takes {', '.join(fitting[:-1])} or {fitting[-1]}"
    return None if plain in fitting else f"{partition.column} is {kind}, and {takes}"


def unbounded(bound: Sequence[str], kinds: Mapping[str, str]) -> tuple[str, str] | None:
    """Why `dedupe_within` cannot hold for a table of these columns and types, and what would; None when it can."""
    for one in map(parse_partition, bound):
        kind = kinds.get(one.column)
        if kind is None:
            why = f"there is no column {one.column}; the columns: {', '.join(kinds)}"
            return why, "name a column that the table has"
        fitting = ("timestamp", "timestamp_ntz") if one.transform == "hours" else ("date", "timestamp", "timestamp_ntz")
        if one.transform != "identity" and kind not in fitting:
            needed = "a timestamp" if one.transform == "hours" else "a date or a timestamp"
            why = f"{one.column} is a {kind}, which has no {one.transform}"
            return why, f"name a column that is {needed}, or make {one.column} one in the contract"
        if one.transform == "identity" and kind.partition("(")[0] not in _EXACT:
            why = f"{one.column} is a {kind}, whose values are not held against one another exactly"
            return why, "name a column of a text, a number without fractions, a decimal, a date or a timestamp"
    return None
