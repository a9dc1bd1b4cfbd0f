"""Any Structured Streaming source, exactly once, with no checkpoint folder as truth.

Spark insists on a checkpoint folder, so each pull builds one from the position in the table and throws it away after.
A batch is published inside `foreachBatch`, with the offsets that Spark has just planned. Whether Spark then notes the
batch as done does not matter: the next pull asks the table. Losing the scratch folder at any time is harmless.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from lodestream.config.secret import fill_references
from lodestream.errors import ConfigError, SourceGap, SourceRecreated
from lodestream.sources.kinds import Opening
from lodestream.sources.source import Position, PulledSource
from lodestream.sources.stream.checkpoint import capture, rebuild
from lodestream.sources.stream.declaration import Stream

Publish = Callable[[DataFrame, Position], None]

# Options that say which source it is; a position of one is none of another.
_IDENTITY = ("path", "subscribe", "subscribePattern", "assign", "topic", "table", "host", "port", "streamName")
_ROW_LIMITS = {"kafka": "maxOffsetsPerTrigger", "iceberg": "streaming-max-rows-per-micro-batch"}
_LOOK_EVERY = 0.05


class _Enough(Exception):
    """A batch that must not look done to Spark: a source may delete or acknowledge what is done."""


class StreamSource(PulledSource):
    """Pulls what is available in micro-batches; each is handed to `publish` with the position that includes it.

    Position: `{"format", "identity", "offset", "query", "sources"}`, see `checkpoint`. A source whose starting
    point is "now" starts at the first pull that publishes.
    """

    def __init__(self, spark: SparkSession, declared: Stream, scratch: Path) -> None:
        self.name = "stream"
        self._spark = spark
        self._declared = declared
        self._options = {key: _filled(key, value) for key, value in declared.options.items()}
        self._identity = {key: self._options[key] for key in _IDENTITY if key in self._options}
        self._scratch = scratch.absolute()

    def ddl(self) -> str:
        """The columns of the Bronze table: those of the source."""
        fields = self._reader(0).load().schema.fields
        return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in fields)

    def check(self, since: Position) -> None:
        """Raise `SourceRecreated` when the position is one of another source."""
        ours = {"format": since["format"], **since["identity"]}
        theirs = {"format": self._declared.format, **self._identity}
        if ours != theirs:
            raise SourceRecreated(
                f"the declared stream is {theirs}, the table has read {ours}",
                why="offsets of one source mean nothing to another",
                fix="declare the old source, or `lode run --accept-gap TABLE` to start the new one from its beginning",
            )

    def pull(
        self, since: Position | None, publish: Publish, rows: int, *, stopping: Callable[[], bool] = lambda: False
    ) -> bool:
        """Publish what is available after `since`, batch by batch; False when there was nothing.

        `publish(rows, position)` must make both visible in one step, or raise: then nothing after it is pulled and its
        exception comes out of here. After a batch `stopping` may end the pull; what is left waits for the next one.
        """
        if since is not None:
            self.check(since)
        self._scratch.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="stream-", dir=self._scratch))
        try:
            if since is not None:
                rebuild(folder, since)
            pulling = _Pulling(folder, publish, stopping, self._stamped)
            self._run(folder, pulling, rows)
            return pulling.published > 0
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, folder: Path, pulling: _Pulling, rows: int) -> None:
        writer = self._reader(rows).load().writeStream.foreachBatch(pulling.batch)
        # Not as_uri(): Hadoop takes the percent signs of an escaped path for part of the name.
        query = writer.trigger(availableNow=True).option("checkpointLocation", f"file://{folder}").start()
        try:
            while query.isActive and not pulling.ended.wait(_LOOK_EVERY):
                pass
            if not pulling.ended.is_set():
                query.awaitTermination()
        except StreamingQueryException as error:
            if pulling.failure is None:
                raise self._translated(error) from error
        finally:
            query.stop()
        if pulling.failure is not None:
            raise pulling.failure

    def _reader(self, rows: int) -> DataStreamReader:
        limit = _ROW_LIMITS.get(self._declared.format)
        sized = {limit: str(rows)} if limit and rows else {}
        reader = self._spark.readStream.format(self._declared.format).options(**{**sized, **self._options})
        return reader.schema(self._declared.schema) if self._declared.schema else reader

    def _stamped(self, captured: Mapping[str, Any]) -> Position:
        return {"format": self._declared.format, "identity": self._identity, **captured}

    def _translated(self, error: StreamingQueryException) -> Exception:
        text = str(error)
        if "failOnDataLoss" in text or "data may have been lost" in text or "DATA_LOSS" in text:
            return SourceGap(
                f"the {self._declared.format} stream has lost data that we have not read",
                why=text.strip().splitlines()[0],
                fix="`lode run --accept-gap TABLE` starts it anew from what is left",
            )
        return error


def open_stream(declared: Stream, opening: Opening) -> StreamSource:
    return StreamSource(opening.spark, declared, opening.config.state_dir / "tmp")


class _Pulling:
    """One pull: what `foreachBatch` calls, in a thread of its own. Spark makes text of what it raises: kept here."""

    def __init__(
        self,
        folder: Path,
        publish: Publish,
        stopping: Callable[[], bool],
        stamped: Callable[[Mapping[str, Any]], Position],
    ) -> None:
        self._folder = folder
        self._publish = publish
        self._stopping = stopping
        self._stamped = stamped
        self.published = 0
        self.ended = Event()
        self.failure: Exception | None = None

    def batch(self, rows: DataFrame, number: int) -> None:
        if self.ended.is_set():
            raise _Enough
        try:
            self._publish(rows, self._stamped(capture(self._folder, number)))
            self.published += 1
            if self._stopping():
                self.ended.set()
        except Exception as error:
            self.failure = error
            self.ended.set()
            raise


def _filled(key: str, value: str) -> str:
    try:
        return fill_references(str(value), os.environ)
    except KeyError as missing:
        raise ConfigError(f"option {key}: the variable {missing.args[0]} is not set", fix="export it") from missing
