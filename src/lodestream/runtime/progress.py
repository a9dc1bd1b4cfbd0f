"""How long work reports that it moves: the seam between the runtime and whoever shows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext


class Step(ABC):
    """One piece of work under way."""

    @abstractmethod
    def advance(self, amount: int = 1) -> None:
        """Called from the thread that opened the step, each time `amount` more units are done."""


class Progress(ABC):
    """Shows steps. Every wait that may take over two seconds opens one."""

    @abstractmethod
    def step(self, label: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Step]:
        """Open a step; `total` is None when the length is not known. An exception passes through."""


class SilentProgress(Progress):
    """Shows nothing: for tests, scripts and `--json`."""

    def step(self, label: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Step]:
        return nullcontext(_SilentStep())


class _SilentStep(Step):
    def advance(self, amount: int = 1) -> None:
        pass
