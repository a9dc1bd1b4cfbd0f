"""A Gold table as one Parquet file beside it, for readers who want a file: replaced whole, never half written."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as parquet

from lodestream.pipeline.gold.plan import STATE_COLUMN
from lodestream.tables.lake import Lake

# In the file's own metadata: the snapshot it shows.
_SNAPSHOT = b"lode.snapshot"


class Export:
    """Follows one table. A crash between the publication and the file is made up for by the next look."""

    def __init__(self, lake: Lake, name: str, path: Path) -> None:
        self._lake = lake
        self._name = name
        self._path = path
        self._shown: int | None = None

    def show(self, snapshot: int) -> bool:
        """Bring the file to this snapshot; False when it is there already. The rows must fit into memory."""
        if self._shown is None:
            self._shown = _shown_by(self._path)
        if self._shown == snapshot:
            return False
        rows = self._lake.whole(self._name, snapshot).drop(STATE_COLUMN).toArrow()
        marked = rows.replace_schema_metadata({**(rows.schema.metadata or {}), _SNAPSHOT: str(snapshot).encode()})
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_name(f".{self._path.name}.draft")
        try:
            with draft.open("wb") as file:
                parquet.write_table(marked, file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path)
        finally:
            draft.unlink(missing_ok=True)
        self._shown = snapshot
        return True


def _shown_by(path: Path) -> int | None:
    if not path.exists():
        return None
    try:
        return int((parquet.read_schema(path).metadata or {}).get(_SNAPSHOT, b"0"))
    except (OSError, ValueError):
        return None  # not a file of ours, or broken: written anew
