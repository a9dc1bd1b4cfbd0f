"""Whether a reference file waits to be loaded, asked of the file itself: no JVM, no run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lodestream.pipeline.sources import ReferenceData
from lodestream.sources.kinds import Waiting

# Larger files are not read to be compared: a look takes less than a second.
_COMPARED_BYTES = 1 << 20


def reference_waiting(declared: ReferenceData, positions: Mapping[str, Any]) -> Waiting | None:
    """None when only its flow can say."""
    try:
        return _compared(Path(declared.path), positions["file"]) if "file" in positions else None
    except (OSError, ValueError, KeyError):
        return None


def _compared(path: Path, position: Mapping[str, Any]) -> Waiting | None:
    """A file that is loaded whole: how many of its rows are others is not known before it is read, so at least one."""
    facts = path.stat()
    if facts.st_size > _COMPARED_BYTES:
        return None
    same = hashlib.sha256(path.read_bytes()).hexdigest() == position["sha256"]
    return Waiting(0) if same else Waiting(1, facts.st_mtime)
