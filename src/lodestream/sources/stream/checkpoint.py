"""A Structured Streaming checkpoint as a position, and back.

Spark keeps three things that matter for a query without state: the offsets of each batch (`offsets/N`, written before
the batch runs), which batch is done (`commits/N`) and what a source wrote for itself (`sources/`). The first and the
third are the position; the second follows from the table, which has the batch or has not.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

from lodestream.errors import ConfigError
from lodestream.sources.source import Position

LARGEST = 256 * 1024
_DONE = 'v1\n{"nextBatchWatermarkMs":0}'
_COMPACTED = re.compile(r"(\d+)\.compact")


def capture(folder: Path, batch: int) -> dict[str, Any]:
    """The position after the batch that runs now."""
    position = {
        "offset": _without_conf((folder / "offsets" / str(batch)).read_text()),
        "query": json.loads((folder / "metadata").read_text())["id"],
        "sources": _packed(folder / "sources"),
    }
    size = len(json.dumps(position))
    if size > LARGEST:
        raise ConfigError(
            f"the stream source keeps {size:,} bytes of its own state",
            why=f"it rides in every snapshot, and {LARGEST:,} bytes are the limit; a file stream remembers every file",
            fix="read files with Files(path, ...), whose positions stay small; for other sources lower their retention",
        )
    return position


def rebuild(folder: Path, position: Position) -> None:
    """A checkpoint in which the position's batch is number 0 and done: Spark goes on with number 1."""
    _write(folder / "metadata", json.dumps({"id": position["query"]}).encode())
    _write(folder / "offsets" / "0", position["offset"].encode())
    _write(folder / "commits" / "0", _DONE.encode())
    for path, content in _unpacked(position["sources"]).items():
        _write(folder / "sources" / path, content)


def _without_conf(text: str) -> str:
    """Spark notes its settings for stateful operators in each batch; there are none, and they are most of the text."""
    version, metadata, *offsets = text.split("\n")
    try:
        slim = json.dumps({**json.loads(metadata), "conf": {}}, separators=(",", ":"))
    except (ValueError, TypeError):
        return text
    return "\n".join([version, slim, *offsets])


def _packed(folder: Path) -> str:
    # Dot files are checksums: Spark does without, and a stale one would make it refuse the file.
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    contents = {str(path.relative_to(folder)): path.read_bytes().decode("latin-1") for path in _needed(files)}
    return base64.b64encode(zlib.compress(json.dumps(contents).encode(), 9)).decode("ascii")


def _unpacked(text: str) -> dict[str, bytes]:
    contents = json.loads(zlib.decompress(base64.b64decode(text)))
    return {path: content.encode("latin-1") for path, content in contents.items()}


def _needed(files: list[Path]) -> list[Path]:
    """Without the entries of a source's log that its last compacted entry repeats."""
    compacted: dict[Path, int] = {}
    for path in files:
        found = _COMPACTED.fullmatch(path.name)
        if found:
            compacted[path.parent] = max(int(found[1]), compacted.get(path.parent, -1))
    return [path for path in files if _entry(path) >= compacted.get(path.parent, -1)]


def _entry(path: Path) -> int:
    number = path.name.removesuffix(".compact")
    return int(number) if number.isdecimal() else 1 << 62


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
