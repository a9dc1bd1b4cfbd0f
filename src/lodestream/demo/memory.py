"""How much memory the whole demo takes."""

from __future__ import annotations

import threading
import time
from types import TracebackType

import psutil

_PAUSE = 0.25
_FORKING = 3.0  # generous: the time a process began is known to about a second


class PeakMemory:
    """Samples the resident memory of this process and all it started, and keeps the largest sum."""

    def __init__(self) -> None:
        self.peak = 0
        self.now = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="memory", daemon=True)

    @property
    def peak_mb(self) -> int:
        return round(self.peak / 1_000_000)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        me = psutil.Process()
        while not self._over.wait(_PAUSE):
            self.now = _resident(me) + sum(_resident(one) for one in me.children(recursive=True))
            self.peak = max(self.peak, self.now)


def _resident(process: psutil.Process) -> int:
    try:
        return 0 if _just_forked(process) else int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _just_forked(process: psutil.Process) -> bool:
    """Between fork and exec a child shows all pages of its parent, which are counted there."""
    if time.time() - process.create_time() > _FORKING:
        return False
    parent = process.parent()
    return parent is not None and parent.cmdline() == process.cmdline()
