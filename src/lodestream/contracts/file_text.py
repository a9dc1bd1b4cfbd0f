"""The text of a file, read once while the file stays as it is: one plan asks for each contract a dozen times."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

# Two edits within one tick of a file system's clock leave the same times: what changed just now is read again. The
# ticks of some file systems take two seconds.
_SETTLED = 2.5


@dataclass(frozen=True, slots=True)
class _Kept:
    state: tuple[int, ...]
    text: str


_KEPT: dict[Path, _Kept] = {}


def file_text(file: Path) -> str:
    """The text as it is now, from memory when the file is still the one that was read. A look costs one `stat`."""
    state = _state(file.stat())
    kept = _KEPT.get(file)
    if kept is not None and kept.state == state:
        return kept.text
    with file.open(encoding="utf-8") as opened:
        text = opened.read()
        read = os.fstat(opened.fileno())
    if _state(read) == state and time.time() - max(read.st_mtime, read.st_ctime) > _SETTLED:
        _KEPT[file] = _Kept(state, text)
    return text


def _state(found: os.stat_result) -> tuple[int, ...]:
    """A changed time of modification can be set back; that of the last change of the entry cannot."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
