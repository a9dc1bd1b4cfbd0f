"""What the machine offers: Python, Java, memory, disk, folders, a clock."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path

from lodestream.clock import utc
from lodestream.config import Config
from lodestream.doctor.check import Check
from lodestream.runtime.cache import cache_dir
from lodestream.runtime.java import find_java
from lodestream.runtime.jvm_options import jvm_choice
from lodestream.runtime.sizing import available_memory, cores, heap_bytes, total_memory

_LEAST_PYTHON = (3, 11)
_LITTLE_DISK = 2_000_000_000
_TOO_LITTLE_DISK = 300_000_000
_CLOCK_SECONDS = 2.0
_NO_EARLIER = 1_704_067_200  # 2024: a machine that says an earlier time has lost its clock


def python(_config: Config) -> Check:
    found = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < _LEAST_PYTHON:
        return Check("python", "broken", found, "use Python 3.11 or newer")
    return Check("python", "ok", found)


def java(config: Config) -> Check:
    found = find_java(config.runtime)
    return Check("java", "ok", f"{found.version} at {found.home} ({found.origin})")


def memory(config: Config) -> Check:
    heap = heap_bytes(config.spark.driver_memory)
    free, total = available_memory(), total_memory()
    chosen = f"{_mb(heap)} for Spark's heap, {jvm_choice(heap, cores()).collector} collector"
    return Check("memory", "ok", f"{_mb(free)} of {_mb(total)} free, {chosen}")


def disk(config: Config) -> Check:
    places = {_existing(config.root), _existing(cache_dir(config.runtime))}
    free = {place: shutil.disk_usage(place).free for place in places}
    place, least = min(free.items(), key=lambda item: item[1])
    found = f"{_mb(least)} free at {place}"
    if least < _TOO_LITTLE_DISK:
        return Check("disk", "broken", found, "free some space, or move the project to another disk")
    if least < _LITTLE_DISK:
        return Check("disk", "warning", found, "free some space soon: tables, broker and jars share it")
    return Check("disk", "ok", found)


def folders(config: Config) -> Check:
    """Whether we may write where a run writes. A probe file, as permission bits tell only half of it."""
    for folder in (config.state_dir, cache_dir(config.runtime)):
        place = _existing(folder)
        try:
            with tempfile.TemporaryFile(dir=place):
                pass
        except OSError as error:
            fix = "change its permissions, or run as a user who may write there"
            return Check("folders", "broken", f"{place} cannot be written to: {error.strerror}", fix)
    return Check("folders", "ok", f"{config.state_dir} and {cache_dir(config.runtime)} can be written to")


def clock(config: Config) -> Check:
    """Freshness and lag are differences of clocks, so they must agree and go forward."""
    wall, steady = time.time(), time.monotonic()
    time.sleep(0.05)
    drift = (time.time() - wall) - (time.monotonic() - steady)
    fix = "let the system's time service (NTP) set the clock"
    if wall < _NO_EARLIER:
        return Check("clock", "broken", f"it says {time.strftime('%Y-%m-%d', time.gmtime(wall))}", fix)
    if abs(drift) > _CLOCK_SECONDS:
        return Check("clock", "warning", f"it just jumped by {drift:+.1f} s", fix)
    off = _file_system_time(_existing(config.state_dir)) - time.time()
    if abs(off) > _CLOCK_SECONDS:
        return Check("clock", "warning", f"the file system's clock is {off:+.1f} s off this machine's", fix)
    return Check("clock", "ok", f"{utc(time.time())}, steady, agrees with the file system")


def _file_system_time(folder: Path) -> float:
    with tempfile.NamedTemporaryFile(dir=folder) as probe:
        os.utime(probe.fileno())
        return os.fstat(probe.fileno()).st_mtime


def _existing(folder: Path) -> Path:
    return next(one for one in (folder, *folder.absolute().parents) if one.is_dir())


def _mb(size: int) -> str:
    return f"{size // 1_000_000:,} MB"
