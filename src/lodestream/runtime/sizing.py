"""How much of this machine the embedded parts may use."""

from __future__ import annotations

import os
import re
from pathlib import Path

import psutil

from lodestream.errors import ConfigError, RuntimeMissing

MIB = 1024 * 1024
# Spark refuses a heap under 450 MiB. On a small machine driver, broker and Python stay together under 1.5 GB.
LEAST_HEAP = 512 * MIB
SMALL_HEAP = 768 * MIB
MOST_HEAP = 4096 * MIB
BESIDE_HEAP = 320 * MIB  # classes, compiled code, threads and buffers of a small driver
_UNITS = {"": MIB, "k": 1024, "m": MIB, "g": 1024 * MIB, "t": 1024 * 1024 * MIB}
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def cores() -> int:
    """Cores this process may use: a container or `taskset` may give fewer than the machine has."""
    return len(os.sched_getaffinity(0))


def heap_bytes(configured: str | None, *, total: int | None = None, available: int | None = None) -> int:
    """The driver's heap: as configured, else a part of the machine within bounds. Refuses what cannot fit."""
    total = total_memory() if total is None else total
    available = available_memory() if available is None else available
    heap = parse_size(configured) if configured else _share(total)
    if heap < LEAST_HEAP - 32 * MIB:
        raise ConfigError(
            f"spark.driver_memory = {configured!r} is too little",
            why="Spark needs a heap of at least 480 MB",
            fix="set it to 512m or more, or remove it",
        )
    if heap + BESIDE_HEAP > available:
        raise RuntimeMissing(
            "not enough memory for Spark",
            why=f"the driver needs about {_mib(heap + BESIDE_HEAP)} MB;"
            f" {_mib(available)} MB of {_mib(total)} MB are free",
            fix=f"close other programs, or set spark.driver_memory lower ({_mib(LEAST_HEAP)}m is the least)"
            if heap > LEAST_HEAP
            else "close other programs, or give this machine or container more memory",
        )
    return heap


def _share(total: int) -> int:
    """A quarter of a small machine, an eighth of a larger one: a batch needs no more than 512 MB, what grows with the
    project (metadata, broadcast keys, several flows at once) is glad of it."""
    return max(LEAST_HEAP, min(SMALL_HEAP, total // 4), min(MOST_HEAP, total // 8))


def parse_size(text: str) -> int:
    """Bytes of a Spark size such as 700m or 2g; a bare number is in MiB, as Spark reads it."""
    found = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", text.strip().lower())
    if found is None:
        raise ConfigError(f"{text!r} is not a size", fix="write it like 700m or 2g")
    return int(found[1]) * _UNITS[found[2]]


def total_memory() -> int:
    """The machine's, or the container's when that is less."""
    return min([psutil.virtual_memory().total, *(limit for limit, _ in _limits())])


def available_memory() -> int:
    """What can still be taken without swapping."""
    return min([psutil.virtual_memory().available, *(limit - used for limit, used in _limits())])


def _limits() -> list[tuple[int, int]]:
    found = []
    for limit_file, usage_file in _CGROUPS:
        try:
            limit, used = Path(limit_file).read_text().strip(), Path(usage_file).read_text().strip()
        except OSError:
            continue
        if limit.isdecimal():
            # Counted as used here are file pages too, which the kernel gives back; a third is a fair guess.
            found.append((int(limit), int(used) * 2 // 3))
    return found


def _mib(size: int) -> int:
    return size // MIB
