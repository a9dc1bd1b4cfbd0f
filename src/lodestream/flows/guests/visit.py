"""A guest at a table that another run may keep: it publishes beside that run, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from lodestream.flows.batch import Span
from lodestream.flows.code.declared import DeclaredInputs
from lodestream.flows.context import Context
from lodestream.flows.guests.waiting import ask_to_wait, stop_asking
from lodestream.flows.judging.terms import Terms
from lodestream.flows.letters.table import DeadLetters
from lodestream.flows.parts import Home
from lodestream.flows.writing.feed_rows import FeedBatch
from lodestream.flows.writing.judged import JudgedBatch
from lodestream.names import dead_of
from lodestream.sources.table.changes import KeyedChanges
from lodestream.tables.publish import Writer


class Judging(Protocol):
    """How the rows of dead letters are made and judged again."""

    @property
    def terms(self) -> Terms: ...

    @property
    def steady(self) -> bool:
        """Whether a judged batch stays what it is when the table moves."""

    def judged(self, frames: Mapping[str, DataFrame], span: Span, dead: DeadLetters) -> JudgedBatch | FeedBatch: ...


@dataclass(frozen=True, slots=True)
class Visited:
    """What a guest needs of a table. `left` is called when it goes: whatever it published is brought to readers.

    `follows` is the keyed table that it is made from, if it is: its rows are the ones that table has now.
    """

    context: Context
    home: Home
    making: Judging
    inputs: DeclaredInputs
    left: Callable[[], None] = lambda: None
    follows: KeyedChanges | None = None

    @property
    def name(self) -> str:
        return self.context.name

    def has_letters(self) -> bool:
        """Whether the table has refused a row yet."""
        lake = self.context.lake
        return lake.exists(self.name) and lake.exists(dead_of(self.name))


class Visit:
    """Begins with the contract of today: rows are judged as the run beside us would judge them."""

    def __init__(self, visited: Visited) -> None:
        context = visited.context
        self.context = context
        self.inputs = visited.inputs
        self.follows = visited.follows
        self._visited = visited
        self.dead = DeadLetters(context.lake, context.name, context.run, guest=True)
        self.writer = Writer(visited.home.open(guest=True), context.run, alone=False)

    @property
    def terms(self) -> Terms:
        return self._visited.making.terms

    @property
    def steady(self) -> bool:
        return self._visited.making.steady

    def judged(self, frames: Mapping[str, DataFrame], span: Span) -> JudgedBatch | FeedBatch:
        return self._visited.making.judged(frames, span, self.dead)

    def ask(self) -> None:
        """Before an attempt: the run that keeps the table is asked to wait."""
        ask_to_wait(self.writer.store, self.context.run)

    def stop_asking(self) -> None:
        """After the attempts: nobody has to wait any more."""
        stop_asking(self.writer.store, self.context.run)

    def leave(self) -> None:
        self._visited.left()
        self.writer.store.drop(self.writer.branch)
        self.dead.leave()
