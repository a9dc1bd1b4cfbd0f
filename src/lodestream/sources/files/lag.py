"""What waits in a folder, asked of the files themselves: no JVM, no Arrow, no run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from lodestream.errors import LodeError
from lodestream.sources.files import position as file_position
from lodestream.sources.files.declaration import Files
from lodestream.sources.files.listing import FileVersion, fingerprint, ignored, matches
from lodestream.sources.files.store import file_store
from lodestream.sources.kinds import Backlog, Waiting

# Larger files are not read to be counted: a look takes less than a second.
_COUNTED_BYTES = 1 << 20
_MOST_FILES = 20_000
_LINES = ("json", "csv", "text")
_PLAIN = (".json", ".jsonl", ".ndjson", ".csv", ".txt", ".text", ".log", ".tsv")


def backlog(declared: Files) -> Backlog:
    return partial(files_waiting, declared)


def files_waiting(declared: Files, positions: Mapping[str, Any]) -> Waiting | None:
    """What a table of files has still to read; None when only its flow can say."""
    try:
        return _folder(declared, positions["files"]) if "files" in positions else None
    except (OSError, ValueError, KeyError, LodeError):
        return None


def _folder(declared: Files, position: Mapping[str, Any]) -> Waiting | None:
    store = file_store(declared.path, declared.options)
    if not store.local or store.root != position["root"]:
        return None
    root = Path(store.root)
    listed = list(islice(_listed(root, declared.pattern), _MOST_FILES + 1))
    if len(listed) > _MOST_FILES:
        return None
    files = [file for file in listed if file.size > 0]
    upto = file_position.mark(position)
    read = [file for file in files if upto is not None and file.key <= upto]
    if fingerprint(read) != file_position.total(position):
        return None  # some were archived, or came late with an old time: the table's rows tell which, not its metadata
    new = [file for file in files if upto is None or file.key > upto]
    since = min((file.modified / 1e6 for file in new), default=None)
    return Waiting(sum(_rows(root, declared, file) for file in new), since)


def _listed(root: Path, pattern: str) -> Iterator[FileVersion]:
    deep = "/" in pattern
    for folder, below, names in os.walk(root):
        below[:] = below if deep else []
        for name in names:
            place = Path(folder) / name
            path = place.relative_to(root).as_posix()
            if not ignored(path) and matches(path, pattern):
                facts = place.stat()
                yield FileVersion(facts.st_mtime_ns // 1000, path, facts.st_size)


def _rows(root: Path, declared: Files, file: FileVersion) -> int:
    """The lines of a small file; of any other a guess by its size."""
    plain = declared.format in _LINES and file.path.lower().endswith(_PLAIN) and "multiline" not in declared.options
    if plain and file.size <= _COUNTED_BYTES:
        lines = (root / file.path).read_bytes().split(b"\n")
        return sum(1 for line in lines if line.strip()) or 1
    from lodestream.sources.files.rows import estimated_rows

    return estimated_rows(declared.format, file)
