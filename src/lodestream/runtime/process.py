"""Which process is meant by a number that was written down, and whether it still lives."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

# A process tells when it began, rounded in its own way.
_SLACK = 1.0


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process that can be told from a later one that is given the same number, or from one of another machine."""

    host: str
    machine: str
    pid: int
    began: float

    @classmethod
    def own(cls) -> ProcessId:
        return cls(platform.node(), _machine(), os.getpid(), psutil.Process().create_time())

    @property
    def near(self) -> bool:
        """Whether it is of this machine, so that `gone` can tell."""
        return self.machine == _machine()

    @property
    def gone(self) -> bool:
        """Whether it has surely ended; of another machine's process nobody here knows."""
        if not self.near:
            return False
        try:
            found = psutil.Process(self.pid)
            same = abs(found.create_time() - self.began) <= _SLACK
            return not same or found.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True
        except psutil.Error:
            return False


@cache
def _machine() -> str:
    """Two containers may share a host's name, and then neither its processes nor their numbers."""
    return "/".join((platform.node(), _text("/proc/sys/kernel/random/boot_id"), _link("/proc/self/ns/pid")))


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="ascii").strip()
    except OSError:
        return f"{psutil.boot_time():.0f}"


def _link(file: str) -> str:
    try:
        return str(Path(file).readlink())
    except OSError:
        return ""
