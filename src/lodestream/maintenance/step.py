"""What a run does for its tables while it has nothing else to do: the seam that each kind of upkeep is handed in by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol


class Interrupted(Exception):
    """A step was given up for something that matters more; it can be begun again."""


class Attempt:
    """One table's turn. A step that takes long asks it between its parts; its Spark jobs are cancelled meanwhile."""

    def __init__(self, table: str, interrupted: Callable[[], bool]) -> None:
        self.table = table
        self._interrupted = interrupted

    @property
    def interrupted(self) -> bool:
        return self._interrupted()

    def proceed(self) -> None:
        if self.interrupted:
            raise Interrupted


class Step(Protocol):
    """A kind of upkeep. `due` and `postponed` are asked often and cost nothing; `work` may take minutes."""

    def due(self) -> Sequence[str]:
        """The tables whose turn it is, the longest overdue first."""
        ...

    def work(self, attempt: Attempt) -> None:
        """Do it, and tell what came of it as events; what it raises is logged and costs that one attempt."""
        ...

    def postponed(self, table: str) -> None:
        """It is due, and batches are made: they come first."""
        ...
