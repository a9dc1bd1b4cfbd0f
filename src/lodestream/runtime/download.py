"""Fetch jars side by side, each verified before it appears under its name."""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import queue
import threading
import time
from pathlib import Path
from urllib.error import HTTPError, URLError

from lodestream.errors import RuntimeMissing
from lodestream.runtime.lock import Jar, maven_path
from lodestream.runtime.progress import Progress
from lodestream.runtime.repository import Repository

_SIDE_BY_SIDE = 6
_ATTEMPTS = 3
_CHUNK = 256 * 1024
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)

_Report = int | Jar | Exception  # bytes that arrived, a jar that is in place, or why one is not


class _Altered(Exception):
    """What arrived is not what the lock names."""


def fetch_jars(jars: list[Jar], repository: Repository, part: Path, folder: Path, progress: Progress) -> None:
    """Download into `part`, verify, and move into `folder`. The first failure ends all."""
    todo: queue.SimpleQueue[Jar] = queue.SimpleQueue()
    for jar in sorted(jars, key=lambda jar: -jar.size):
        todo.put(jar)
    done: queue.SimpleQueue[_Report] = queue.SimpleQueue()
    stop = threading.Event()
    # Daemon threads: Ctrl-C ends the program at once instead of after the slowest read.
    for _ in range(min(_SIDE_BY_SIDE, len(jars))):
        threading.Thread(target=_work, args=(todo, done, stop, repository, part, folder), daemon=True).start()
    try:
        _follow(len(jars), sum(jar.size for jar in jars), done, progress)
    finally:
        stop.set()


def _follow(count: int, size: int, done: queue.SimpleQueue[_Report], progress: Progress) -> None:
    with progress.step(f"Fetching {count} jars", size, "bytes") as step:
        while count:
            report = done.get()
            if isinstance(report, Exception):
                raise report
            if isinstance(report, int):
                step.advance(report)
            else:
                count -= 1


def _work(
    todo: queue.SimpleQueue[Jar],
    done: queue.SimpleQueue[_Report],
    stop: threading.Event,
    repository: Repository,
    part: Path,
    folder: Path,
) -> None:
    while not stop.is_set():
        try:
            jar = todo.get_nowait()
        except queue.Empty:
            return
        try:
            _fetch(jar, repository, part / jar.file_name, folder / jar.file_name, done, stop)
        except Exception as error:
            done.put(error)
            return
        done.put(jar)


def _fetch(
    jar: Jar,
    repository: Repository,
    part: Path,
    target: Path,
    done: queue.SimpleQueue[_Report],
    stop: threading.Event,
) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        arrived = 0
        try:
            digest = hashlib.sha256()
            with repository.open(maven_path(jar.coordinate)) as source, part.open("wb") as sink:
                while not stop.is_set() and (chunk := source.read(_CHUNK)):
                    arrived += len(chunk)
                    digest.update(chunk)
                    sink.write(chunk)
                    done.put(len(chunk))
                    if arrived > jar.size:
                        break
                sink.flush()
                os.fsync(sink.fileno())
            if stop.is_set():
                return
            if arrived != jar.size or digest.hexdigest() != jar.sha256:
                raise _Altered(f"{arrived} bytes arrived, SHA-256 {digest.hexdigest()[:12]}...")
            part.replace(target)
            _sync_folder(target.parent)
            return
        except (OSError, http.client.HTTPException, _Altered) as error:
            if getattr(error, "errno", None) in _DISK_ERRORS:
                raise
            done.put(-arrived)
            if attempt == _ATTEMPTS or not _may_pass(error):
                raise _refusal(jar, repository, error) from error
            time.sleep(0.5 * 2**attempt)


def _may_pass(error: Exception) -> bool:
    if isinstance(error, HTTPError):
        return error.code >= 500 or error.code == 429
    return not isinstance(error, FileNotFoundError)


def _refusal(jar: Jar, repository: Repository, error: Exception) -> RuntimeMissing:
    mirror = "set LODE_RUNTIME_MAVEN to a mirror, or to a folder in Maven's layout"
    if isinstance(error, _Altered):
        why = f"it is not the file that jars.lock names ({jar.size} bytes, SHA-256 {jar.sha256[:12]}...): {error}"
        fix = f"do not use that repository; {mirror}"
    elif isinstance(error, FileNotFoundError) or (isinstance(error, HTTPError) and error.code == 404):
        why, fix = f"the repository does not have {maven_path(jar.coordinate)}", mirror
    else:
        reason = error.reason if isinstance(error, URLError) else error
        why = f"the repository cannot be reached: {reason}"
        fix = f"check the network and the proxy settings, or {mirror}"
    return RuntimeMissing(f"cannot fetch {jar.coordinate} from {repository}", why=why, fix=fix)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
