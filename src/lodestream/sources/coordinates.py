"""Where rows stand in their sources, told by the columns that they have: no kind of source is named for it."""

from __future__ import annotations

from collections.abc import Collection

from lodestream.pipeline.sources import Coordinates
from lodestream.sources.kinds import known_coordinates


def located_by(columns: Collection[str]) -> Coordinates | None:
    """The coordinates of rows that have these columns; None for rows of another table."""
    return next((one for one in known_coordinates() if {*one.order, "value"} <= set(columns)), None)


def identity_in(columns: Collection[str]) -> tuple[str, ...]:
    """The columns that tell one event from every other; none where there are no such columns."""
    return next((one.identity for one in known_coordinates() if set(one.identity) <= set(columns)), ())


def arrival_in(columns: Collection[str]) -> str | None:
    """The column that says when an event came."""
    return next((one.arrival for one in known_coordinates() if one.arrival in columns), None)


def marks_in(columns: Collection[str]) -> Coordinates | None:
    """The coordinates of rows some of which hold no record, and are about the source itself."""
    marked = (one for one in known_coordinates() if one.records is not None)
    return next((one for one in marked if {*one.order, *one.about, "value"} <= set(columns)), None)


def order_columns() -> tuple[str, ...]:
    """Every column that may order rows, of any source."""
    return tuple(dict.fromkeys(name for one in known_coordinates() for name in one.order))
