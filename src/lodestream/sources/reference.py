"""One file read whole: small, slowly changing data beside the pipeline."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from lodestream.errors import SourceUnreadable
from lodestream.pipeline import Files
from lodestream.sources.source import Position, Source


class ReferenceFile(Source):
    """Position: `{"file": name, "sha256": digest}`. The content decides: touching a file changes nothing.

    `by` are the columns that order its rows; they are part of the position, so that declaring others reads it again.
    """

    def __init__(self, spark: SparkSession, declared: Files, schema: str | None, by: Sequence[str] = ()) -> None:
        self.name = "file"
        self._spark = spark
        self._declared = declared
        self._schema = schema or declared.schema
        self.path = Path(declared.path)
        self._by = {"by": list(by)} if by else {}
        self._hashed: tuple[tuple[int, int], str] | None = None
        self._asked = 0.0

    def latest(self) -> Position | None:
        self._asked = time.time()
        try:
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

    def accept(self, since: Position, latest: Position) -> Position:
        return since

    def asof(self, to: Position) -> float | None:
        return self._asked

    def frame(self) -> DataFrame:
        reader = self._spark.read.format(self._declared.format).options(**self._declared.options)
        if self._declared.format in ("csv", "json"):
            reader = reader.option("mode", "FAILFAST")  # otherwise a value that does not fit is null, and nobody knows
        if self._declared.format == "csv":
            # Columns are taken by their name: by position, a file with two of them swapped would be read as it is.
            reader = reader.option("header", "true").option("enforceSchema", "false")
            reader = reader if self._schema else reader.option("inferSchema", "true")
        if self._schema:
            reader = reader.schema(self._schema)
        return reader.load(_hadoop_path(self.path.absolute()))

    def _digest(self) -> str:
        facts = self.path.stat()
        version = (facts.st_mtime_ns, facts.st_size)
        if self._hashed is None or self._hashed[0] != version:
            self._hashed = (version, hashlib.sha256(self.path.read_bytes()).hexdigest())
        return self._hashed[1]


def _hadoop_path(path: Path) -> str:
    """Hadoop takes a path as it is written, not percent-encoded, and some characters as a pattern unless escaped."""
    return "file:" + re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path))
