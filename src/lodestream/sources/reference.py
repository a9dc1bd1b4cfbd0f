"""One file read whole: small, slowly changing data beside the pipeline."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from lodestream.errors import SourceGap
from lodestream.pipeline import Files
from lodestream.sources.source import Position, Source


class ReferenceFile(Source):
    """Position: `{"file": name, "sha256": digest}`. The content decides: touching a file changes nothing."""

    def __init__(self, spark: SparkSession, declared: Files, schema: str | None) -> None:
        self.name = "file"
        self._spark = spark
        self._declared = declared
        self._schema = schema or declared.schema
        self._path = Path(declared.path)
        self._hashed: tuple[tuple[int, int], str] | None = None
        self._asked = 0.0

    def latest(self) -> Position | None:
        self._asked = time.time()
        try:
            return {"file": self._path.name, "sha256": self._digest()}
        except OSError as error:
            raise SourceGap(
                f"reference file {self._path} cannot be read", why=str(error), fix="restore the file, or fix its path"
            ) from error

    def start(self, latest: Position) -> Position:
        return {"file": latest["file"], "sha256": None}

    def check(self, since: Position, latest: Position) -> None:
        """Any content replaces any other: there is no gap."""

    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        return latest

    def pending(self, since: Position, to: Position) -> int:
        return int(since["sha256"] != to["sha256"])

    def read(self, since: Position, to: Position) -> DataFrame:
        return self.frame()

    def accept(self, since: Position, latest: Position) -> Position:
        return since

    def asof(self, to: Position) -> float | None:
        return self._asked

    def frame(self) -> DataFrame:
        reader = self._spark.read.format(self._declared.format).options(**self._declared.options)
        if self._declared.format == "csv":
            reader = reader.option("header", "true").option("mode", "FAILFAST")
            reader = reader if self._schema else reader.option("inferSchema", "true")
        if self._schema:
            reader = reader.schema(self._schema)
        return reader.load(_hadoop_path(self._path.absolute()))

    def _digest(self) -> str:
        facts = self._path.stat()
        version = (facts.st_mtime_ns, facts.st_size)
        if self._hashed is None or self._hashed[0] != version:
            self._hashed = (version, hashlib.sha256(self._path.read_bytes()).hexdigest())
        return self._hashed[1]


def _hadoop_path(path: Path) -> str:
    """Hadoop takes a path as it is written, not percent-encoded, and some characters as a pattern unless escaped."""
    return "file:" + re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path))
