"""Upkeep in the running driver, while it has nothing else to do.

A batch comes first, always: a step begins when no batch was made for a second, and its Spark jobs are cancelled as soon
as one begins.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from lodestream.maintenance.step import Attempt, Interrupted, Step

log = logging.getLogger(__name__)

# Seconds without a batch before a step begins, and between two looks whether one has begun meanwhile.
QUIET = 1.0
_LOOK = 0.1
# Seconds after a step that raised: what is wrong may be wrong for long.
_REST = 1.0


class Idling(Protocol):
    """What is asked of the driver: 0 while a batch is made."""

    def idle_for(self) -> float: ...


class Jobs(Protocol):
    """The Spark jobs of upkeep: `begin` is called on the thread that starts them, `cancel` on another."""

    def begin(self, table: str) -> None: ...

    def cancel(self) -> None: ...


class IdleWork:
    """One thread that works and one that watches over it.

    Both last as long as the run: Spark keeps a thread of its own for every thread that talks to it.
    """

    def __init__(self, steps: Sequence[Step], driver: Idling, jobs: Jobs) -> None:
        self._steps, self._driver, self._jobs = steps, driver, jobs
        self._ended = threading.Event()
        self._interrupted = threading.Event()
        self._running = threading.Event()
        self._thread = threading.Thread(target=self._work, name="lode-upkeep", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name="lode-upkeep-watch", daemon=True)
        self._watcher.start()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(30)

    def attempt(self, step: Step, table: str) -> None:
        """One attempt, given up as soon as a batch begins."""
        self._interrupted.clear()
        self._running.set()
        try:
            self._jobs.begin(table)
            step.work(Attempt(table, self._interrupted.is_set))
        except Interrupted:
            log.debug("upkeep.interrupted flow=%s", table)
        except Exception as error:  # without this thread no step would ever be done again
            log.warning("upkeep.failed flow=%s error=%s", table, error)
            self._ended.wait(_REST)
        finally:
            self._running.clear()

    def _work(self) -> None:
        while not self._ended.wait(_LOOK):
            for step in self._steps:
                self._look_at(step)

    def _look_at(self, step: Step) -> None:
        due = step.due()
        if due and self._driver.idle_for() >= QUIET and not self._ended.is_set():
            self.attempt(step, due[0])
        elif due:
            step.postponed(due[0])

    def _watch(self) -> None:
        while not self._ended.is_set() or self._running.is_set():
            if not self._running.wait(1.0):
                continue
            if self._ended.is_set() or self._driver.idle_for() == 0:
                self._interrupted.set()
                self._cancel_jobs()
            time.sleep(_LOOK)

    def _cancel_jobs(self) -> None:
        try:
            self._jobs.cancel()
        except Exception as error:  # the next look tries again; without a watcher no batch would come first any more
            log.warning("upkeep.uncancelled error=%s", error)
