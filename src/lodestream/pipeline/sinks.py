"""What a declaration needs to know of a sink; `lodestream.serving.Sink` is one, and lives above."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from lodestream.pipeline.location import Location, declaration_error


@runtime_checkable
class SinkDecl(Protocol):
    @property
    def label(self) -> str: ...

    def open(self, table: str) -> Any: ...

    def problems(self) -> Iterable[str]: ...

    def describe(self) -> str: ...

    def beside(self, folder: Path) -> SinkDecl: ...


def check_sinks(name: str, value: Any, location: Location) -> tuple[SinkDecl, ...]:
    """The sinks of one table, each with a name of its own."""
    found: list[SinkDecl] = []
    for one in value if isinstance(value, list | tuple) else (value,):
        if isinstance(one, type) or not isinstance(one, SinkDecl):
            raise declaration_error(
                location,
                f"{name}: {one!r} is no sink",
                why="a sink is an instance of a class that inherits from lodestream.serving.Sink",
                fix=f'write {name}=[Parquet("exports/orders.parquet")], or see docs/extending.md',
            )
        if any(one.label == other.label for other in found):
            raise declaration_error(
                location,
                f'{name}: two sinks are called "{one.label}"',
                why="what was delivered is remembered by that name",
                fix='give one of them another: name="..."',
            )
        found.append(one.beside(location.folder))
    return tuple(found)
