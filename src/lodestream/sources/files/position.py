"""How far a folder has been read, in a few kilobytes however many files there are.

`{"root", "mark", "sum", "read", "batch", "accepted"}`:

- `batch` names the files of this batch with size and time, packed: two positions determine the rows between them.
- `sum` is the fingerprint of all files read, `mark` the last of them in reading order. A folder whose files up to the
  mark have this fingerprint holds nothing unread or changed there: no need to ask anyone.
- `read` counts the files that the Bronze table has rows of. Where the fingerprint does not match (files were archived,
  or came late with an old time), the table's `file` column tells which were read, and the count whether it still can.
- `accepted` names versions that a person has accepted as read.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lodestream.errors import SourceRewritten
from lodestream.sources.files.listing import FileVersion, fingerprint, plus

if TYPE_CHECKING:
    from lodestream.sources.source import Position

_Mark = tuple[int, str]
# The positions and the previous ones ride in every snapshot, and metadata.json repeats every snapshot.
_LARGEST_BATCH = 6_000


def begin(root: str) -> dict[str, Any]:
    return {"root": root, "sum": _hex(0), "read": 0}


def advance(since: Position, files: Sequence[FileVersion]) -> Position:
    """The position after these files, or after the first of them that fit."""
    chosen = list(files)
    while len(packed := pack(chosen)) > _LARGEST_BATCH and len(chosen) > 1:
        chosen = chosen[: len(chosen) // 2]
    highest = max(file.key for file in chosen)
    before = mark(since)
    moved: dict[str, Any] = {
        "root": since["root"],
        "mark": list(highest if before is None else max(before, highest)),
        "sum": _hex(plus(total(since), chosen)),
        "read": since["read"] + len(chosen),
        "batch": packed,
    }
    if "accepted" in since:
        moved["accepted"] = since["accepted"]
    return moved


def batch(since: Position, to: Position) -> list[FileVersion]:
    """The files between two neighbouring positions."""
    if since == to:
        return []
    if since["root"] != to["root"] or not follows(since, to):
        raise SourceRewritten(
            f"two positions in {to['root']} do not follow each other",
            why="a position names the files of its own batch only, and the earlier one is not its predecessor",
            fix="go through the positions one batch at a time",
        )
    return unpack(to.get("batch"))


def follows(since: Position, to: Position) -> bool:
    """Whether the batch that `to` names is all that lies between the two."""
    return plus(total(since), unpack(to.get("batch"))) == total(to)


def mark(position: Position) -> _Mark | None:
    found = position.get("mark")
    return None if found is None else (int(found[0]), str(found[1]))


def total(position: Position) -> int:
    return int(position["sum"], 16)


def accepted(position: Position) -> list[FileVersion]:
    return unpack(position.get("accepted"))


def accept(since: Position, known: Sequence[FileVersion], excused: Sequence[FileVersion]) -> Position:
    """`since`, with what is known now as read, and the excused versions named if they fit."""
    names = pack(excused)
    resumed = {key: since[key] for key in ("root", "mark", "read") if key in since}
    resumed["sum"] = _hex(fingerprint(known))
    return {**resumed, "accepted": names} if excused and len(names) <= _LARGEST_BATCH else resumed


def pack(files: Sequence[FileVersion]) -> str:
    rows = [[file.path, file.size, file.modified] for file in files]
    text = json.dumps(rows, separators=(",", ":")).encode("ascii")
    return base64.b64encode(zlib.compress(text, 9)).decode("ascii")


def unpack(text: str | None) -> list[FileVersion]:
    if not text:
        return []
    rows = json.loads(zlib.decompress(base64.b64decode(text)))
    return [FileVersion(modified, path, size) for path, size, modified in rows]


def _hex(value: int) -> str:
    return f"{value:032x}"
