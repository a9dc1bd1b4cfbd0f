"""The kinds of sources. A kind registers itself: how it is opened, and how it is asked what waits there.

Nobody else names a kind: whoever has a declaration asks here what goes with it, and whoever has rows asks by their
columns where they stand in their source.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from lodestream.config import Config
from lodestream.errors import DeclarationError
from lodestream.pipeline.sources import Coordinates, SourceDeclaration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lodestream.sources.source import PulledSource, Source
    from lodestream.tables.lake import Lake

D = TypeVar("D", bound=SourceDeclaration)


@dataclass(frozen=True, slots=True)
class Opening:
    """What a source is opened with. `bootstrap` is the project's own broker, or the one that it is configured with."""

    lake: Lake
    table: str
    pipeline: str
    config: Config
    bootstrap: str
    # What the sources of one run have in common, such as a connection. Keys are the kind's own.
    shared: dict[Any, Any] = field(default_factory=dict)

    @property
    def spark(self) -> SparkSession:
        """The session of the table's flow."""
        return self.lake.spark


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rows that no batch has read, and when the oldest of them came."""

    rows: int
    since: float | None = None


# Given a table's positions, what waits for it; None when only its flow can say.
Backlog = Callable[[Mapping[str, Any]], Waiting | None]


class GivenEvent(Protocol):
    """An event that a test gives: in bytes, as the source would hold it. `micros` is when it came, since 1970."""

    @property
    def payload(self) -> bytes | None: ...
    @property
    def key_bytes(self) -> bytes | None: ...
    @property
    def header_bytes(self) -> Mapping[str, bytes | None]: ...
    @property
    def micros(self) -> int: ...
    @property
    def topic(self) -> str | None: ...
    @property
    def partition(self) -> int: ...


# Given events, each with its number, as rows that the source would give.
StandIn = Callable[[Any, "SparkSession", Sequence[tuple[int, GivenEvent]]], "DataFrame"]


@dataclass(frozen=True, slots=True)
class SourceKind:
    """`open` gives a source that is read from one position to another, `pull` one that plans its batches itself.

    `backlog` is asked by `lode status`, in a thread and without a JVM: None says that the source does not answer.
    `stand_in` makes rows of what a test gives; without one a test gives rows with the source's own columns.
    """

    declaration: type[SourceDeclaration]
    open: Callable[[Any, Opening], Source] | None = None
    pull: Callable[[Any, Opening], PulledSource] | None = None
    backlog: Callable[[Any, Config], Backlog | None] | None = None
    stand_in: StandIn | None = None


_kinds: dict[type[SourceDeclaration], SourceKind] = {}


def register_source(
    declaration: type[D],
    *,
    open: Callable[[D, Opening], Source] | None = None,
    pull: Callable[[D, Opening], PulledSource] | None = None,
    backlog: Callable[[D, Config], Backlog | None] | None = None,
    stand_in: Callable[[D, SparkSession, Sequence[tuple[int, GivenEvent]]], DataFrame] | None = None,
) -> None:
    """Say how sources that are declared so are read: by `open` or by `pull`. The others may be left out."""
    if (open is None) == (pull is None):
        raise DeclarationError(f"{declaration.__name__} is read by `open` or by `pull`", fix="give one of the two")
    if open is not None and declaration.ddl is None:
        raise DeclarationError(
            f"{declaration.__name__} says no columns",
            why="its table is made before the first row is read",
            fix='give the class ddl = "value BINARY, ..."',
        )
    _kinds[declaration] = SourceKind(declaration, open, pull, backlog, stand_in)


def kind_of(declared: SourceDeclaration) -> SourceKind:
    """What was registered for a declaration, or for a class that it extends."""
    for one in type(declared).__mro__:
        if one in _kinds:
            return _kinds[one]
    name = type(declared).__name__
    raise DeclarationError(
        f"nothing reads {declared.describe()}",
        why=f"{name} is declared, and no kind of source is registered for it",
        fix=f"register_source({name}, open=...), beside the class",
    )


def known_coordinates() -> tuple[Coordinates, ...]:
    """Those of every kind, each once, in the order in which the kinds were registered."""
    found = (kind.declaration.coordinates for kind in _kinds.values())
    return tuple(dict.fromkeys(one for one in found if one is not None))


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
