"""Beside the flows: the small things that a run does every moment, on threads of their own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Duty:
    """Something to do every so many seconds. What it raises costs that one time, never the run."""

    name: str
    every: float
    work: Callable[[], None]
    due: float = 0.0


class Attendant:
    """Does its duties one after the other until it is closed: what may wait for long has an attendant of its own."""

    def __init__(self, *duties: Duty) -> None:
        self._duties = duties
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"lode-{duties[0].name}", daemon=True)

    def start(self) -> None:
        for duty in self._duties:
            duty.due = time.monotonic() + duty.every
        self._thread.start()

    def close(self, patience: float = 5.0) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(patience)

    def _work(self) -> None:
        while not self._ended.wait(max(0.0, min(duty.due for duty in self._duties) - time.monotonic())):
            for duty in self._duties:
                if duty.due <= time.monotonic() and not self._ended.is_set():
                    self._do(duty)
                    duty.due = time.monotonic() + duty.every

    def _do(self, duty: Duty) -> None:
        try:
            duty.work()
        except Exception as error:
            log.info("duty.failed name=%s error=%s", duty.name, error)
