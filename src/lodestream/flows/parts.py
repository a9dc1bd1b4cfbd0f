"""The parts of a flow. A kind of table is an assembly of them; `flow.py` says when each is called.

What is new: `Intake`, or `Taking` where the input decides that itself. The table itself: `Home`. How rows are made,
judged and written: `Making`, which gives a `Batch`. What follows a publication: `After`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lodestream.errors import LodeError
from lodestream.flows.batch import Batch, NoRows, Outcome, Published, Span
from lodestream.sources.source import Position
from lodestream.tables.publish import Base
from lodestream.tables.snapshot import Stamp
from lodestream.tables.store import TableStore

Positions = Mapping[str, Position]
Publish = Callable[[Span], Outcome]


class Intake(ABC):
    """What is new in the inputs. Everything it raises stops the step, and nothing is published."""

    def ready(self) -> bool:
        """Whether every input exists. Asked until it is so, before the table is opened."""
        return True

    @abstractmethod
    def look(self) -> Positions | None:
        """How far each input reaches now; None while one does not exist. Asked at every step."""

    @abstractmethod
    def news(self, known: Positions, latest: Positions) -> bool:
        """Whether something waits, as far as the inputs tell: an idle flow does not ask the catalog."""

    @abstractmethod
    def span(self, stamp: Stamp | None, latest: Positions, rows: int) -> Span | None:
        """The span of about `rows` rows that the next batch reads, after the batch with this stamp; None when nothing
        waits."""

    @abstractmethod
    def accepted(self, since: Positions) -> Positions:
        """Where to go on when what was lost between there and here is accepted."""

    def starts(self) -> Positions:
        """Where each input that exists begins."""
        return {}

    def refuse_gone(self, known: Positions) -> None:
        """Raise when an input is missing that was read up to `known`; one that was never read is late."""
        return

    def confirm(self, to: Positions) -> None:
        """Called when the rows are staged: raise when the inputs are no longer those that were looked at."""
        return

    def asof(self, to: Positions) -> float | None:
        """Epoch seconds up to which a table that has read this far holds everything; None when nobody can tell."""
        return None

    def explain(self, error: Exception) -> LodeError | None:
        """Our error inside what came out of a batch, when an input knows it."""
        return None

    def close(self) -> None:
        """The flow ends."""
        return


class Taking(ABC):
    """For inputs whose span is known, or may change, only while the batch is made."""

    @abstractmethod
    def take(self, base: Base, latest: Positions, rows: int, publish: Publish) -> Outcome | None:
        """Choose the span of about `rows` rows that the next batch reads, and `publish` it; None when there is none."""


class Home(ABC):
    """The table itself and its siblings."""

    @abstractmethod
    def open(self, *, guest: bool = False) -> TableStore:
        """Make the table when it is missing, bring it to its declaration, and give where batches are published.

        Called before the first batch, and again by a flow that is made anew. May be repeated after any failure. A
        `guest` does not write down which contract the table is kept under: the run that keeps it does.
        """

    def follow_edits(self, *, opened: bool) -> None:
        """Called before every step: apply what a person has edited. An edit that fails is tried again by the next."""
        return

    def refuse_adoption(self) -> LodeError | None:
        """Why rows that are there already cannot be taken over; None when they can."""
        return None


class Making(ABC):
    """How a span becomes a batch. Nothing is published by it; what it raises stops the step."""

    @abstractmethod
    def make(self, span: Span) -> Batch:
        """Read the span and turn it into rows of this table."""

    def empty(self, span: Span, store: TableStore) -> Batch:
        """A batch that only moves positions."""
        return NoRows(store)

    def instead(self, error: Exception) -> Making | None:
        """Another way to make the same span when this one raised; None when there is none."""
        return None

    def notes(self) -> Mapping[str, str]:
        """What every snapshot of the table says beside positions and counts."""
        return {}

    def explain(self, error: Exception) -> LodeError | None:
        """Our error inside what came out of a batch, when the way it is made knows it."""
        return None


class After(ABC):
    """What follows a step: called after every one that did not fail, with what it published or None."""

    @abstractmethod
    def follow(self, outcome: Outcome | None) -> Published | None:
        """Do it, and say what readers find new; None when that is just what was published. May raise: the next step
        calls it again."""


class Repair(ABC):
    """For tables that a verification may find to be wrong."""

    @property
    @abstractmethod
    def rebuilding(self) -> bool:
        """Whether a rebuild was asked for and is not published yet."""

    @abstractmethod
    def rebuild_next(self) -> None:
        """Make the next batch, which comes without news too, from the whole of the inputs. Any thread may ask."""


class Gate(ABC):
    """Who may publish before us."""

    @abstractmethod
    def let_pass(self, store: TableStore) -> bool:
        """Whether somebody has published while we waited: then the batch is made on a new base."""

    def took(self, seconds: float) -> None:
        """How long the last batch took."""
        return


@dataclass(frozen=True, slots=True)
class Parts:
    intake: Intake
    home: Home
    making: Making
    after: Sequence[After] = ()
    gate: Gate | None = None
    taking: Taking | None = None
    repair: Repair | None = None
