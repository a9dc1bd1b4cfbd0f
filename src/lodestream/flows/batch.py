"""What goes through a flow: the span of input, what a tier makes of it, and what was published."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from lodestream.sources.source import Position
from lodestream.tables.publish import Base
from lodestream.tables.snapshot import Snapshot, Stamp
from lodestream.tables.store import TableStore
from lodestream.tables.swap import RowLocation


@dataclass(frozen=True, slots=True)
class Facts:
    """What a batch tells of the rows it wrote: how many came, went and only mark an order key.

    Of those that went: the first key, when they are few, and between which values of the partition columns they lie;
    and `locations`, where they lay in the table as of its snapshot `state`, when a batch has just looked them up. Of
    those that came, their `entries` in the directory of keys, when they are few; of the marks, `remembered`, on
    top of their snapshot `marks_state`.
    """

    came: int = 0
    gone: int = 0
    marks: int = 0
    replaced: tuple[object, ...] = ()
    within: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    locations: tuple[RowLocation, ...] = ()
    state: int | None = None
    entries: tuple[int, ...] = ()
    remembered: tuple[int, ...] = ()
    marks_state: int | None = None
    replacing: int = 0  # how many of those that came took the place of one that went


@dataclass(frozen=True, slots=True)
class Span:
    """The input of one batch: from where to where, per source."""

    since: Mapping[str, Position]
    to: Mapping[str, Position]
    rows: int
    caught_up: bool = True
    previous: Stamp | None = None
    given: DataFrame | None = None  # the rows themselves, where the source has handed them out already


@dataclass(frozen=True, slots=True)
class Published:
    flow: str
    batch: int
    snapshot: int
    positions: Mapping[str, Any]
    rows: Mapping[str, int]
    bytes: int
    caught_up: bool
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A published batch, what it was built on, and what it tells of its rows; None when nobody looked."""

    published: Published
    base: Base
    facts: Facts | None = None


class Batch(ABC):
    """What a tier made of a span, not yet written."""

    counts: Mapping[str, int]

    def facts(self) -> Facts | None:
        """What is known of the rows, asked for once they are published."""
        return None

    @abstractmethod
    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        """Write the rows to the branch in one snapshot that carries the properties."""

    def companions(self, stamp: Stamp, main_version: str) -> None:
        """Commit what must be visible no later than the batch, which builds on `main_version`: its dead letters."""
        return

    def tidy(self, *, lost: bool) -> None:
        """Called once the batch is decided: published, or lost to another run. Must not raise."""
        return

    def audit(self, snapshot: Snapshot) -> None:
        """Raise `AuditFailed` or `ContractViolation` when the staged rows must not be published."""
        return

    def notes(self) -> Mapping[str, str]:
        """Further snapshot properties, asked for after `companions`."""
        return {}

    def release(self) -> None:
        """Called when the batch is done, published or not."""
        return


class NoRows(Batch):
    """It only moves positions."""

    def __init__(self, store: TableStore) -> None:
        self.counts = {"in": 0}
        self._store = store

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        self._store.commit_empty(branch, properties)

    def facts(self) -> Facts | None:
        return Facts()
