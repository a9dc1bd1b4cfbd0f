"""Progress on a terminal as bars, elsewhere as a line now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, SpinnerColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.text import Text

from lodestream.runtime.progress import Progress, Step

# A wait that is shorter than this is not worth a line.
_SILENT_SECONDS = 2.0
_LINE_SECONDS = 10.0


class RichProgress(Progress):
    """A bar or a spinner per step, gone when the step is done."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._bars: Bars | None = None
        self._open = 0

    @contextmanager
    def step(self, label: str, total: int | None = None, unit: str = "") -> Iterator[Step]:
        with self._lock:
            bars = self._bars = self._bars or _bars(self._console)
            self._open += 1
            if self._open == 1:
                bars.start()
        task = bars.add_task(label, total=total, unit=unit)
        try:
            yield _BarStep(bars, task)
        finally:
            with self._lock:
                bars.remove_task(task)
                self._open -= 1
                if self._open == 0:
                    bars.stop()
                    self._bars = None


class _BarStep(Step):
    def __init__(self, bars: Bars, task: TaskID) -> None:
        self._bars, self._task = bars, task

    def advance(self, amount: int = 1) -> None:
        self._bars.advance(self._task, amount)


class _AmountColumn(TextColumn):
    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        return Text(amount(int(task.completed), task.total, task.fields["unit"]), style="dim")


def _bars(console: Console) -> Bars:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(30), _AmountColumn(), TimeElapsedColumn())
    return Bars(*columns, console=console, transient=True)


class PlainProgress(Progress):
    """Lines for logs: none for short steps, then one now and then, and one at the end."""

    def __init__(self, console: Console, *, silent: float = _SILENT_SECONDS, between: float = _LINE_SECONDS) -> None:
        self._console, self._silent, self._between = console, silent, between

    @contextmanager
    def step(self, label: str, total: int | None = None, unit: str = "") -> Iterator[Step]:
        step = _CountedStep()
        over = threading.Event()
        started = time.monotonic()

        def report() -> None:
            pause = self._silent
            while not over.wait(pause):
                done = amount(step.done, total, unit)
                self._line(f"{label} ... {done}".rstrip())
                step.shown, pause = True, self._between

        thread = threading.Thread(target=report, name="progress", daemon=True)
        thread.start()
        try:
            yield step
        finally:
            over.set()
            thread.join()
            if step.shown:
                self._line(f"{label}: {time.monotonic() - started:.0f} s")

    def _line(self, text: str) -> None:
        self._console.print(Text(text))


class _CountedStep(Step):
    def __init__(self) -> None:
        self.done = 0
        self.shown = False

    def advance(self, amount: int = 1) -> None:
        self.done += amount


def amount(done: int, total: float | None, unit: str) -> str:
    """How much of a step is done, in words."""
    if total is None:
        return ""
    if unit == "bytes":
        return f"{decimal(done)} of {decimal(int(total))}"
    return f"{done:,} of {int(total):,} {unit}".rstrip()
