"""When to send: as fast as it goes, at a fixed rate, or at the pace of the month itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from threading import Event
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .events import Batch

Schedule = Callable[[Batch], NDArray[np.float64]]
"""Seconds after the start at which each event of a batch is to be sent; called once per batch, in order."""

_SHORTEST_NAP, _LONGEST_NAP = 0.02, 1.0


class Outlet(Protocol):
    """Where events go. An exception from any method ends the stream."""

    @property
    def sent(self) -> int: ...

    def send(self, batch: Batch, start: int = 0, stop: int | None = None) -> None:
        """Take the events of the batch from `start` to `stop`."""

    def idle(self) -> None:
        """Called while nothing is due."""

    def close(self) -> None:
        """Called once at the end: return when everything sent is safe."""


def fixed_rate(rate: float) -> Schedule:
    """`rate` events a second, evenly."""
    sent = 0

    def schedule(batch: Batch) -> NDArray[np.float64]:
        nonlocal sent
        moments: NDArray[np.float64] = (sent + np.arange(len(batch), dtype=np.float64)) / rate
        sent += len(batch)
        return moments

    return schedule


def real_time(speed: float = 1.0) -> Schedule:
    """When the trip happens, `speed` times as fast as the clock: mornings are busy, nights quiet."""
    beginning: float | None = None

    def schedule(batch: Batch) -> NDArray[np.float64]:
        nonlocal beginning
        if beginning is None:
            beginning = float(batch.due[0])
        moments: NDArray[np.float64] = (batch.due.astype(np.float64) - beginning) / speed
        return moments

    return schedule


def stream(
    batches: Iterable[Batch], outlet: Outlet, schedule: Schedule | None = None, stop: Event | None = None
) -> int:
    """Send every batch, on schedule when there is one, until done or told to stop. Returns the events sent."""
    stop = stop or Event()
    began = time.monotonic()
    for batch in batches:
        if stop.is_set():
            break
        if schedule is None:
            outlet.send(batch)
        else:
            _send_on_time(batch, outlet, schedule(batch), began, stop)
    outlet.close()
    return outlet.sent


def _send_on_time(batch: Batch, outlet: Outlet, moments: NDArray[np.float64], began: float, stop: Event) -> None:
    place = 0
    while place < len(batch) and not stop.is_set():
        elapsed = time.monotonic() - began
        ready = int(np.searchsorted(moments, elapsed, side="right"))
        if ready > place:
            outlet.send(batch, place, ready)
            place = ready
            continue
        outlet.idle()
        stop.wait(min(max(moments[place] - elapsed, _SHORTEST_NAP), _LONGEST_NAP))
