"""Ctrl-C and SIGTERM while a pipeline runs."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class StopSignals:
    """A batch is finished or abandoned cleanly: `stop` is set. Outside a batch there is nothing to wait for.

    `interrupted` tells Ctrl-C, which a shell reports as 130, from a supervisor's SIGTERM, which is no failure.
    Before `running`, and on a second Ctrl-C, the signal interrupts at once: a download must not go on for minutes.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.running = False
        self.interrupted = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        self._before = {number: signal.signal(number, self._heard) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        self.interrupted = self.interrupted or number == signal.SIGINT
        if not self.running or self.stop.is_set():
            raise KeyboardInterrupt
        self.stop.set()
