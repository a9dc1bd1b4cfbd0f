"""The seam for everything a flow can read.

A position is JSON: the identity of the source beside how far we have read. It is stored in the snapshot that contains
the rows, so a source never keeps state of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lodestream.errors import LodeError, SourceChanged, SourceRecreated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Position = Mapping[str, Any]


class Source(ABC):
    """One input of a flow, known in the flow's positions by `name`.

    A batch calls `latest`, `check`, `cap` and `read`, in this order. Raising `Transient` retries the batch,
    raising `SourceChanged` stops the flow before anything was read.
    """

    name: str
    # Whether the starting point moves with time and must be written down before the first row is read.
    pins_start: bool = False
    # Whether `pending` is a guess: then more rows than it says may come.
    estimates: bool = False
    # Whether it is a table whose rows only come: then each row that was read can be counted on its way out.
    appends: bool = False

    @abstractmethod
    def latest(self) -> Position | None:
        """How far the source reaches now; None while it does not exist yet."""

    @abstractmethod
    def start(self, latest: Position) -> Position:
        """Where a flow without positions begins."""

    @abstractmethod
    def check(self, since: Position, latest: Position) -> None:
        """Raise `SourceChanged` when `since` does not lead to `latest`: recreated, shrunk, gap, rewritten."""

    @abstractmethod
    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        """The furthest position that adds about `rows` rows at most, and something if there is anything."""

    @abstractmethod
    def pending(self, since: Position, to: Position) -> int:
        """How many rows lie between two positions, at most."""

    @abstractmethod
    def read(self, since: Position, to: Position) -> DataFrame:
        """The rows after `since` up to `to`; the same two positions give the same rows, always."""

    def gone(self, since: Position) -> SourceChanged:
        """The error for a source that we have read from and that does not exist any more."""
        return SourceRecreated(f"{self.name} is gone", why="the table has read from it, and it does not exist any more")

    def confirm(self, to: Position) -> None:
        """Called once the rows are staged: raise `SourceChanged` when the source was replaced while we read it."""
        return

    @abstractmethod
    def accept(self, since: Position, latest: Position) -> Position:
        """The position to go on from once a person has accepted that `check` failed."""

    def asof(self, to: Position) -> float | None:
        """The moment (epoch seconds) up to which `to` holds everything the source had; None when unknown."""
        return None

    def explain(self, error: Exception) -> LodeError | None:
        """Our error inside what Spark raised while it read our rows; None when it came from elsewhere."""
        return None

    def close(self) -> None:
        """Called once when the flow ends."""
        return


class PulledSource(ABC):
    """A source that plans its batches itself and hands their rows out inside a call of its own.

    A step of its flow calls `pull`, once. Raising there is as in `Source`.
    """

    name: str

    @abstractmethod
    def ddl(self) -> str:
        """The columns of the Bronze table; asked when it is opened."""

    @abstractmethod
    def pull(
        self,
        since: Position | None,
        publish: Callable[[DataFrame, Position], None],
        rows: int,
        *,
        stopping: Callable[[], bool],
    ) -> bool:
        """Publish what is available after `since`, batch by batch of about `rows`; False when there was nothing.

        `publish(rows, position)` makes both visible in one step, or raises: then nothing after it is pulled. After a
        batch, `stopping` tells whether to leave the rest for the next pull.
        """

    def close(self) -> None:
        """Called once when the flow ends."""
        return
