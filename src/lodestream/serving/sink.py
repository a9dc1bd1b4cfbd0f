"""The seam for sinks: what is declared with a table, what is given to it, and what a failure causes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Change:
    """A row that appeared (`weight` 1) or went away (-1). `id` is the same whenever the change is given again."""

    weight: int
    row: Mapping[str, Any]
    id: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a sink is given at once: changes of one snapshot in their order, or the whole table.

    It may hold no changes: then the table went on without any, and only the position moves.
    """

    table: str
    changes: Iterable[Change]  # to be read once; of a whole table, one by one from its files
    position: str  # where the sink is after this delivery; for the same delivery the same text
    after: str | None  # where it was before; None: nothing was ever delivered
    whole: bool = False  # all rows of the table: they replace everything that was delivered before
    # All rows of a whole delivery as a pyarrow.Table.
    arrow: Callable[[], Any] = field(default=lambda: None, repr=False)


class Outlet(ABC):
    """A sink while a run goes on, used by one thread. Whatever it raises is tried again with another outlet."""

    def position(self, kept: str | None) -> str | None:
        """Where the sink is; asked after `open`. None gives it everything from the beginning.

        `kept` is what the project remembers: it may be behind what was delivered, never ahead. A sink that writes
        `delivery.position` together with the rows returns that instead, and then has every change exactly once.
        """
        return kept

    @abstractmethod
    def deliver(self, delivery: Delivery) -> None:
        """Take a delivery, durably: after the return it is not given again, except after a crash in that moment."""

    def close(self) -> None:
        """Called at the end, and after a failure. What it raises is ignored."""
        return


@dataclass(frozen=True, kw_only=True)
class Sink(ABC):
    """Where the changes of a table go: `sinks=[...]` of its declaration. Declaring opens nothing."""

    name: str = ""  # in messages, and where its position is kept: another name is another sink
    batch_rows: int = 10_000  # most changes in one delivery
    latest: bool = False  # only the newest state counts: each delivery is the whole table
    gap: Literal["refuse", "refresh"] = "refuse"  # when what it lacks is gone: stop, or be given the whole table

    @abstractmethod
    def open(self, table: str) -> Outlet:
        """Connect. Called in a run, when there may be something to deliver."""

    def problems(self) -> Iterable[str]:
        """What is wrong with the declaration, for `lode plan`; a run does not start with any."""
        return ()

    def describe(self) -> str:
        """Where it goes, in a few words, for `lode plan`: no secrets."""
        return self.label

    def beside(self, folder: Path) -> Sink:
        """The same with relative paths taken from the folder of the declaring file."""
        return self

    @property
    def label(self) -> str:
        return self.name or type(self).__name__.lower()
