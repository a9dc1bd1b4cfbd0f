"""The seam of a declared source: what the house asks of it without knowing its kind. Reading is elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

from lodestream.pipeline.location import Location, caller_location, declaration_error

FileFormat = Literal["json", "csv", "parquet", "text", "binary"]


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The columns that say where in its source a row stands.

    A row that has all of `order` beside its `value` is located by them, whichever source gave it.
    """

    # What orders the changes of a key, where nothing else does.
    order: tuple[str, ...]
    # What tells one event from every other; `order`, unless it is more than that.
    event: tuple[str, ...] = ()
    # The source's own time of an event. Without `sequence_by` it comes before `order`.
    clock: str | None = None
    # When an event came; lateness is counted from it.
    arrival: str | None = None
    # Columns about what the rows came in, a file for instance: a dead letter leaves them out.
    about: tuple[str, ...] = ()
    # An SQL condition that is true of rows which hold a record, where others are about the source itself.
    records: str | None = None

    @property
    def identity(self) -> tuple[str, ...]:
        return self.event or self.order


class SourceDeclaration(ABC):
    """What a Bronze table captures, as declared: plain and frozen, usable without a JVM.

    A kind of source is a subclass, and `lodestream.sources.register_source` says how it is read.
    """

    # The columns of a captured row as Spark DDL; None when only the source itself can tell.
    ddl: ClassVar[str | None] = None
    coordinates: ClassVar[Coordinates | None] = None
    # Whether a row is the bytes of an event in `value`, which Silver decodes.
    raw: ClassVar[bool] = True
    # Whether it is a service: a test that is given no events for it does not connect to it.
    remote: ClassVar[bool] = False

    @abstractmethod
    def describe(self) -> str:
        """What is read, in a few words: `lode plan` shows them."""

    @property
    def schema_text(self) -> str | None:
        """The columns that the user has spelt out, as Spark DDL."""
        return None

    @property
    def own_topics(self) -> tuple[str, ...]:
        """Topics, or patterns of them, that are read from the project's own broker: a run starts it for them."""
        return ()

    def reads_topic(self, topic: str) -> bool:
        """Whether an event that is sent to this topic of the project's own broker comes to the table."""
        return False

    def beside(self, folder: Path) -> Self:
        """The same, with relative paths taken from the folder of the declaring file."""
        return self


@dataclass(frozen=True)
class ReferenceData(SourceDeclaration):
    """One file beside the pipeline, read whole: what `Pipeline.reference` declares."""

    path: str
    format: FileFormat = "csv"
    schema: str | None = None
    raw = False

    def __post_init__(self) -> None:
        check_format(caller_location(), self.format)

    def describe(self) -> str:
        return f"{self.format} files {self.path}"

    @property
    def schema_text(self) -> str | None:
        return self.schema

    @property
    def file(self) -> Path | None:
        """The file on this machine; None when it lies elsewhere."""
        return None if ":/" in self.path else Path(self.path)


def check_format(here: Location, given: str) -> None:
    if given not in get_args(FileFormat):
        raise declaration_error(here, f'unknown file format "{given}"', fix=one_of(FileFormat))


def one_of(choices: Any) -> str:
    return "use one of " + ", ".join(f'"{one}"' for one in get_args(choices))
