"""One file read whole: small, slowly changing data beside the pipeline."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from lodestream.errors import SourceUnreadable, SourceUnsettled
from lodestream.pipeline.sources import ReferenceData as Declared
from lodestream.sources.reference.reader import ReferenceReader
from lodestream.sources.source import Position, Source

_Version = tuple[int, int, int, int]
# Seconds after which a file that changes again surely has another time.
_TICK = 2.0
# Seconds without a change after which a file counts as written, how often it is looked at until then, and for how long.
_SETTLE, _LOOK, _PATIENCE = 1.0, 0.1, 5.0


class ReferenceFile(Source):
    """Position: `{"file": name, "sha256": digest}`. The content decides: touching a file changes nothing.

    `by` are the columns that order its rows; they are part of the position, so that declaring others reads it again.
    """

    def __init__(self, spark: SparkSession, declared: Declared, schema: str | None, by: Sequence[str] = ()) -> None:
        self.name = "file"
        self._spark = spark
        self._declared = declared
        self._schema = schema or declared.schema
        self.path = Path(declared.path)
        self._by = {"by": list(by)} if by else {}
        self._hashed: tuple[_Version, str] | None = None
        self._looked: _Version | None = None
        self._settled: _Version | None = None
        self._asked = 0.0

    def latest(self) -> Position | None:
        self._asked = time.time()
        try:
            self._settle()
            return {"file": self.path.name, "sha256": self._digest(), **self._by}
        except OSError as error:
            raise SourceUnreadable(
                f"reference file {self.path} cannot be read",
                why=str(error),
                fix="put the file back; readers still see the rows before, and the next good version is taken at once",
            ) from error

    def start(self, latest: Position) -> Position:
        return {"file": latest["file"], "sha256": None}

    def check(self, since: Position, latest: Position) -> None:
        """Any content replaces any other: there is no gap."""

    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        return latest

    def pending(self, since: Position, to: Position) -> int:
        return int(since["sha256"] != to["sha256"] or since.get("by") != to.get("by"))

    def read(self, since: Position, to: Position) -> DataFrame:
        return self.frame()

    def confirm(self, to: Position) -> None:
        """Rows of a file that was written meanwhile are not those of the content that the position names."""
        try:
            same = self._version() == self._looked and self._content() == to["sha256"]
        except OSError:
            same = False
        if not same:
            raise SourceUnsettled(
                f"reference file {self.path} changed while it was read",
                why="the rows may be of its old content, its new one or a part of that; nothing of it was published",
                fix="nothing: it is read again. Write it under another name and rename it, and this cannot happen",
            )

    def accept(self, since: Position, latest: Position) -> Position:
        return since

    def asof(self, to: Position) -> float | None:
        return self._asked

    @cached_property
    def reader(self) -> ReferenceReader:
        place = _hadoop_path(self.path.absolute())
        return ReferenceReader(self._spark, self._declared, self._schema, self.path, place)

    def frame(self) -> DataFrame:
        return self.reader.frame()

    def _digest(self) -> str:
        self._looked = version = self._version()
        if self._hashed is None or self._hashed[0] != version:
            digest = self._content()
            # Written in the same tick of the clock as this look, it could change once more and look the same.
            self._hashed = (version, digest) if self._asked - max(version[:2]) / 1e9 > _TICK else None
            return digest
        return self._hashed[1]

    def _settle(self) -> None:
        """Wait for a file that has just changed: half of it may still be on its way, and half a file is no error."""
        version = self._version()
        began = since = time.monotonic()
        while version != self._settled and time.time() - max(version[:2]) / 1e9 < _SETTLE:
            if time.monotonic() - began > _PATIENCE:
                raise SourceUnsettled(
                    f"reference file {self.path} is being written",
                    why=f"it changed again and again for {_PATIENCE:g} s; readers still see the rows before",
                    fix="nothing: it is taken when it comes to rest, or write it aside and rename it at the end",
                )
            time.sleep(_LOOK)
            now = self._version()
            if now != version:
                version, since = now, time.monotonic()
            elif time.monotonic() - since >= _SETTLE:  # by our own clock: that of a file server may be ahead
                break
        self._settled = version

    def _content(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def _version(self) -> _Version:
        """With the time of the last change of any kind: a copy may bring along the time and the size of another."""
        facts = self.path.stat()
        return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino


def _hadoop_path(path: Path) -> str:
    """Hadoop takes a path as it is written, not percent-encoded, and some characters as a pattern unless escaped."""
    return "file:" + re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path))
