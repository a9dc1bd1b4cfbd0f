"""What lies in a folder, and which of it has stopped changing."""

from __future__ import annotations

import fnmatch
import hashlib
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from lodestream.errors import SourceUnreadable
from lodestream.sources.files.store import FileStore

_UNFINISHED = re.compile(
    r".*(\.(tmp|temp|part|partial|crdownload|swp|inprogress|writing|filepart)|~|\._COPYING_)", re.IGNORECASE
)
# A file that looks old enough is still looked at twice: clocks of file servers differ from ours.
_SECOND_LOOK = 0.5
_SUMS = 1 << 128


@dataclass(frozen=True, slots=True, order=True)
class FileVersion:
    """One state of one file. Files are read in this order."""

    modified: int  # microseconds since the epoch
    path: str  # below the root
    size: int

    @property
    def key(self) -> tuple[int, str]:
        return (self.modified, self.path)


@dataclass(frozen=True, slots=True)
class Listing:
    files: tuple[FileVersion, ...]  # all but ignored names, in reading order
    settled: tuple[FileVersion, ...]  # of these, what can be read: not empty, no longer changing
    sum: int  # fingerprint of the settled ones
    taken: float  # epoch seconds before the listing began


@dataclass(frozen=True, slots=True)
class Clock:
    """Time, as a test may want to have it."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def fingerprint(files: Iterable[FileVersion]) -> int:
    """One number for a set of file versions; adding a file adds its number."""
    return sum(_digest(file) for file in files) % _SUMS


def plus(total: int, files: Iterable[FileVersion]) -> int:
    return (total + fingerprint(files)) % _SUMS


def ignored(path: str) -> bool:
    """Hidden and unfinished names, and everything below such a folder: `.x`, `_x`, `x.tmp`, `x._COPYING_`, ..."""
    return any(part.startswith((".", "_")) or _UNFINISHED.fullmatch(part) for part in path.split("/"))


def matches(path: str, pattern: str) -> bool:
    """`*.json` is a name in the folder itself; with a slash folders count: `*/*.json`, `**/*.json` at any depth."""
    return _match(path.split("/"), pattern.split("/"))


class Folder:
    """Lists a store. The pattern decides whether folders below the root are looked into."""

    def __init__(self, store: FileStore, pattern: str) -> None:
        self._store = store
        self._pattern = pattern
        self._deep = "/" in pattern
        self._opened: tuple[Any, str] | None = None

    def versions(self) -> list[FileVersion] | None:
        """Every file that counts, in reading order; None while the folder does not exist."""
        import pyarrow.fs as arrow_fs

        with self._store.errors("listing"):
            filesystem, root = self._open()
            if filesystem.get_file_info(root).type == arrow_fs.FileType.NotFound:
                return None
            selector = arrow_fs.FileSelector(root, allow_not_found=True, recursive=self._deep)
            infos = filesystem.get_file_info(selector)
        cut = len(root) + 1
        found = (_version(info, cut) for info in infos if info.is_file)
        try:
            return sorted(file for file in found if self._counts(file.path))
        except UnicodeDecodeError as error:
            raise SourceUnreadable(
                f"{self._store.root} holds a file whose name is no UTF-8: {error.object!r}",
                fix="rename it or move it out of the folder",
            ) from error

    def state(self, path: str) -> FileVersion | None:
        with self._store.errors("looking at a file"):
            return file_state(*self._open(), path)

    def _counts(self, path: str) -> bool:
        return not ignored(path) and matches(path, self._pattern)

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            self._opened = self._store.open()
        return self._opened


def file_state(filesystem: Any, root: str, path: str) -> FileVersion | None:
    """What the file is now; None when it is gone."""
    info = filesystem.get_file_info(f"{root}/{path}")
    return _version(info, len(root) + 1) if info.is_file else None


class Settling:
    """Remembers since when each file is as it is."""

    def __init__(self, settle: float, clock: Clock) -> None:
        self.seconds = settle
        self._clock = clock
        self._seen: dict[str, tuple[FileVersion, float]] = {}

    @property
    def second_look(self) -> float:
        return min(self.seconds, _SECOND_LOOK)

    def settled(self, files: Iterable[FileVersion]) -> list[FileVersion]:
        """Unchanged for the settle time before our eyes; or by its own clock, and on a second look."""
        moment, wall = self._clock.monotonic(), self._clock.now()
        seen: dict[str, tuple[FileVersion, float]] = {}
        found = []
        for file in files:
            before, since = self._seen.get(file.path, (None, moment))
            since = since if before == file else moment
            seen[file.path] = (file, since)
            aged = wall - file.modified / 1e6 >= self.seconds
            enough = self.second_look if aged else self.seconds
            # An empty file says nothing yet: it counts from its first byte on.
            if file.size > 0 and moment - since >= enough:
                found.append(file)
        self._seen = seen
        return found


def _match(parts: list[str], globs: list[str]) -> bool:
    if not globs or not parts:
        return not globs and not parts
    if globs[0] == "**":
        return len(globs) == 1 or any(_match(parts[skip:], globs[1:]) for skip in range(len(parts)))
    return fnmatch.fnmatchcase(parts[0], globs[0]) and _match(parts[1:], globs[1:])


def _digest(file: FileVersion) -> int:
    text = f"{file.path}\0{file.size}\0{file.modified}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")


def _version(info: Any, cut: int) -> FileVersion:
    return FileVersion((info.mtime_ns or 0) // 1000, info.path[cut:], info.size or 0)
