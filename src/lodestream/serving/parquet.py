"""A table as one Parquet file, for readers who want a file: replaced whole, never half written."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from glob import escape
from pathlib import Path

from lodestream.errors import SinkUnavailable
from lodestream.serving.sink import Delivery, Outlet, Sink

# In the file's own metadata: the snapshot it shows, and the position that a restart asks for.
_SNAPSHOT, _POSITION = b"lode.snapshot", b"lode.position"
_OLD_DRAFT = 3600.0


@dataclass(frozen=True)
class Parquet(Sink):
    """`export=` of a Gold table declares one. The rows must fit into memory."""

    path: str | Path
    latest: bool = field(default=True, init=False)

    def open(self, table: str) -> Outlet:
        return ParquetFile(Path(self.path))

    def problems(self) -> Iterator[str]:
        if Path(self.path).suffix != ".parquet":
            yield f"{str(self.path)!r} names no Parquet file"

    def describe(self) -> str:
        return f"Parquet {self.path}"

    def beside(self, folder: Path) -> Parquet:
        return replace(self, path=folder / Path(self.path).expanduser())


class ParquetFile(Outlet):
    """The file says which snapshot it shows: whatever else is remembered of it does not count."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._remove_drafts()

    def position(self, kept: str | None) -> str | None:
        import pyarrow.parquet as parquet

        try:
            found = (parquet.read_schema(self._path).metadata or {}).get(_POSITION)
        except (OSError, ValueError):
            return None  # there is none, or it is not a file of ours, or broken: written anew
        return found.decode() if found is not None else None

    def _remove_drafts(self) -> None:
        """Those of processes that were killed; a young one may be under way."""
        for draft in self._path.parent.glob(f".{escape(self._path.name)}.*draft"):
            with suppress(OSError):
                if time.time() - draft.stat().st_mtime > _OLD_DRAFT:
                    draft.unlink()

    def deliver(self, delivery: Delivery) -> None:
        import pyarrow.parquet as parquet

        rows = delivery.arrow()
        said = {_SNAPSHOT: delivery.position.split("/")[1], _POSITION: delivery.position}
        marked = rows.replace_schema_metadata({**(rows.schema.metadata or {}), **said})
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Of this process alone: a run that has lost the table may still be writing.
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}.draft")
        try:
            with draft.open("wb") as file:
                parquet.write_table(marked, file)
                file.flush()
                os.fsync(file.fileno())
            if self.position(None) not in (None, delivery.after):
                raise SinkUnavailable(f"{self._path} was written by another run", why="that one keeps the table now")
            draft.replace(self._path)
        finally:
            draft.unlink(missing_ok=True)
