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
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        """A process of this machine that lives."""
        return cls(platform.node(), _machine(), pid, _began(pid))

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
            same = abs(_began(self.pid) - self.began) <= _SLACK
            return not same or psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True
        except psutil.Error:
            return False


def _began(pid: int) -> float:
    """Clock ticks since the machine began, where it tells: a clock that is set anew must not make a process another."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return float(told.rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return float(psutil.Process(pid).create_time())


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
