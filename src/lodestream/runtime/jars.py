"""Jars, fetched once into a cache that every start verifies."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from lodestream.config import RuntimeConfig
from lodestream.errors import RuntimeMissing
from lodestream.runtime.cache import cache_dir, usable
from lodestream.runtime.download import fetch_jars
from lodestream.runtime.lock import Group, Jar, locked_jars
from lodestream.runtime.progress import Progress
from lodestream.runtime.repository import find_repository

_log = logging.getLogger(__name__)
_HASHING_THREADS = 4
_SPARE_BYTES = 32 * 1024 * 1024


def ensure_jars(group: Group, runtime: RuntimeConfig, progress: Progress) -> list[Path]:
    """The verified files of a group, in class path order; what is missing or altered is fetched first."""
    folder = cache_dir(runtime) / "jars"
    return ensure(locked_jars(group), folder, runtime, progress)


def ensure(jars: Iterable[Jar], folder: Path, runtime: RuntimeConfig, progress: Progress) -> list[Path]:
    """As `ensure_jars`, for any jars and folder."""
    wanted = list(jars)
    with usable(folder):
        if unverified(wanted, folder):
            with _alone(folder, progress):
                _fetch_missing(wanted, folder, runtime, progress)
    return [folder / jar.file_name for jar in wanted]


def unverified(jars: Iterable[Jar], folder: Path) -> list[Jar]:
    """Those that are absent, of another size, or of another content. Everything is hashed, each time."""
    wanted = list(jars)
    with ThreadPoolExecutor(_HASHING_THREADS) as pool:
        genuine = list(pool.map(lambda jar: _is_genuine(jar, folder / jar.file_name), wanted))
    return [jar for jar, good in zip(wanted, genuine, strict=True) if not good]


def _is_genuine(jar: Jar, file: Path) -> bool:
    try:
        size = file.stat().st_size
        with file.open("rb") as content:
            good = size == jar.size and hashlib.file_digest(content, "sha256").hexdigest() == jar.sha256
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not good:
        _log.warning("jar.refused file=%s bytes=%d expected=%d", file, size, jar.size)
    return good


def _fetch_missing(jars: list[Jar], folder: Path, runtime: RuntimeConfig, progress: Progress) -> None:
    # Asked again under the lock: another process may have fetched them while we waited.
    missing = unverified(jars, folder)
    if not missing:
        return
    for left_over in folder.glob(".part-*"):  # of a process that was killed; we alone hold the lock
        shutil.rmtree(left_over, ignore_errors=True)
    _require_space(folder, sum(jar.size for jar in missing))
    with tempfile.TemporaryDirectory(prefix=".part-", dir=folder, ignore_cleanup_errors=True) as part:
        fetch_jars(missing, find_repository(runtime), Path(part), folder, progress)


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + _SPARE_BYTES:
        raise RuntimeMissing(
            f"not enough disk space for the jars in {folder}",
            why=f"{needed // 1_000_000 + 1} MB to fetch, {free // 1_000_000} MB free",
            fix="free some space, or set LODE_RUNTIME_CACHE to a folder on another disk",
        )


@contextmanager
def _alone(folder: Path, progress: Progress) -> Iterator[None]:
    """One process fetches at a time. The lock goes with the process, however it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as lock:
        if not _try_lock(lock.fileno()):
            with progress.step("Waiting for another process to fetch the jars"):
                while not _try_lock(lock.fileno()):
                    time.sleep(0.1)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
