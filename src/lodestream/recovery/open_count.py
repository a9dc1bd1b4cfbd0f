"""How many dead letters are open, without reading them where their table's history tells it."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from lodestream.config import Config
from lodestream.tables.history import History
from lodestream.tables.notes import ATTEMPT
from lodestream.tables.snapshot import Snapshot

_FILE = "open_letters.json"
_MOST_REMEMBERED = 1_000


def count_open(config: Config, dead: History) -> int:
    """Letters that nobody has decided on.

    While nobody ever decided, that is all of them. Decisions are rows too: then the rows are counted, and the number is
    remembered for this snapshot, so that the next look only adds what has come since.
    """
    head = dead.head()
    if head is None:
        return 0
    remembered = _remembered(config.state_dir)
    for snapshot in dead.ancestors(head):
        known = remembered.get(f"{dead.uuid}:{snapshot.id}")
        if known is not None:
            return known + head.live_rows - snapshot.live_rows
        if not _letters_only(snapshot):
            break
        if snapshot.parent is None:
            return head.live_rows
    found = _counted(config, dead.name)
    _remember(config.state_dir, remembered, f"{dead.uuid}:{head.id}", found)
    return found


def _letters_only(snapshot: Snapshot) -> bool:
    """Whether a snapshot only adds the letters of a batch, or changes no row at all."""
    if snapshot.operation == "replace" or (snapshot.operation == "append" and not snapshot.added_rows):
        return True
    stamp = snapshot.stamp
    return snapshot.operation == "append" and stamp is not None and not stamp.guest and ATTEMPT in stamp.notes


def _counted(config: Config, name: str) -> int:
    from lodestream.recovery.letters import open_letters
    from lodestream.tables.inspect import Inspector

    view = Inspector(config).look(name)
    return open_letters(view) if view else 0


def _remembered(state_dir: Path) -> dict[str, int]:
    try:
        found = json.loads((state_dir / _FILE).read_text(encoding="utf-8"))
        return {str(key): int(value) for key, value in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _remember(state_dir: Path, remembered: dict[str, int], place: str, count: int) -> None:
    kept = dict([*remembered.items(), (place, count)][-_MOST_REMEMBERED:])
    with suppress(OSError):  # a folder that may only be read costs time, not the answer
        written = state_dir / f"{_FILE}.{os.getpid()}"
        written.write_text(json.dumps(kept), encoding="utf-8")
        written.replace(state_dir / _FILE)
