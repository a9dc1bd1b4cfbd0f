"""Actors that take turns: one seed, one interleaving, every time the same."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable


class Livelock(AssertionError):
    """The actors took far more steps than their work can need."""


class _Over(BaseException):
    """Unwinds the other actors once one has failed."""


class Schedule:
    """Threads, of which exactly one runs at a time; at each `pause` the seed decides who goes on."""

    def __init__(self, rng: random.Random, *, most_steps: int = 4_000) -> None:
        self._rng = rng
        self._most = most_steps
        self.steps = 0
        # A low chance leaves an actor asleep for long, like a process that was stopped.
        self._switch = rng.choice((0.03, 0.1, 0.3, 0.6))
        self._waiting: dict[str, threading.Lock] = {}
        self._current = ""
        self._done = threading.Event()
        self._failure: BaseException | None = None

    def run(self, actors: dict[str, Callable[[], None]]) -> None:
        self._waiting = {name: threading.Lock() for name in actors}
        for baton in self._waiting.values():
            baton.acquire()
        threads = [threading.Thread(target=self._live, args=item, daemon=True) for item in actors.items()]
        for thread in threads:
            thread.start()
        self._hand_over()
        self._done.wait()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def pause(self) -> None:
        self.steps += 1
        if self.steps > self._most:
            raise Livelock(f"{self.steps} steps")
        if self._rng.random() >= self._switch or len(self._waiting) == 1:
            return
        chosen = self._rng.choice(list(self._waiting))
        if chosen != self._current:
            mine = self._waiting[self._current]
            self._current = chosen
            self._waiting[chosen].release()
            mine.acquire()
            if self._failure is not None:
                raise _Over

    def _live(self, name: str, act: Callable[[], None]) -> None:
        self._waiting[name].acquire()
        try:
            if self._failure is None:
                act()
        except _Over:
            pass
        except BaseException as failure:
            self._failure = failure
        finally:
            del self._waiting[name]
            self._hand_over()

    def _hand_over(self) -> None:
        if not self._waiting:
            self._done.set()
            return
        self._current = self._rng.choice(list(self._waiting))
        self._waiting[self._current].release()
