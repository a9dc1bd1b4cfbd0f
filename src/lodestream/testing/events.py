"""Events that a test gives to a pipeline: the Bronze rows are those of the declared source, no broker and no folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lodestream import Files, Kafka, clock
from lodestream.errors import ConfigError
from lodestream.pipeline import Table
from lodestream.sources.source import Position, Source
from lodestream.testing.encode import in_bytes
from lodestream.testing.rows import frame_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True, slots=True)
class Event:
    """One record, with what stands beside its value. `at` is when it reached the broker, or when its file was written.

    A value that is neither bytes nor text is sent as JSON; None is a tombstone.
    """

    value: Any
    key: bytes | str | None = None
    headers: Mapping[str, bytes | str] = field(default_factory=dict)
    at: datetime | None = None
    topic: str | None = None
    partition: int = 0

    @classmethod
    def of(cls, given: Any) -> Event:
        event = given if isinstance(given, cls) else cls(given)
        return cls(event.value, event.key, event.headers, event.at or clock.now(), event.topic, event.partition)

    @property
    def payload(self) -> bytes | None:
        return in_bytes(self.value)


class GivenEvents(Source):
    """Stands in for the source of one Bronze table: all that was given has arrived. A position counts events."""

    name = "given"

    def __init__(self, table: Table, columns: str | None = None) -> None:
        self.spark: SparkSession | None = None
        self.events: list[Event] = []
        self._table = table
        self._columns = columns

    @property
    def ddl(self) -> str:
        if self._table.source is not None and self._table.source.ddl is not None:
            return self._table.source.ddl
        if self._columns is None:
            raise ConfigError(
                f"the columns of {self._table.name} are not known",
                why="they are its source's own, and a test does not connect to it",
                fix='say them: given(table, rows, columns="id int, name string")',
            )
        return self._columns

    def latest(self) -> Position:
        return {"next": len(self.events)}

    def start(self, latest: Position) -> Position:
        return {"next": 0}

    def check(self, since: Position, latest: Position) -> None:
        return

    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        return latest

    def pending(self, since: Position, to: Position) -> int:
        return int(to["next"] - since["next"])

    def accept(self, since: Position, latest: Position) -> Position:
        return latest

    def read(self, since: Position, to: Position) -> DataFrame:
        if self.spark is None:
            raise RuntimeError("a flow reads with its own session")
        events = list(enumerate(self.events))[since["next"] : to["next"]]
        if isinstance(self._table.source, Kafka):
            return self._from_topic(self.spark, self._table.source, events)
        if isinstance(self._table.source, Files):
            return self._from_files(self.spark, self._table.source, events)
        return frame_of(self.spark, [event.value for _, event in events], self.ddl)

    def _from_topic(self, spark: SparkSession, declared: Kafka, events: Sequence[tuple[int, Event]]) -> DataFrame:
        topic = (declared.topics or (declared.pattern,))[0]
        rows = pa.table(
            {
                "key": pa.array([in_bytes(event.key) for _, event in events], pa.binary()),
                "value": pa.array([event.payload for _, event in events], pa.binary()),
                "headers": pa.array([_headers(event) for _, event in events], _HEADERS),
                "topic": pa.array([event.topic or topic for _, event in events], pa.string()),
                "partition": pa.array([event.partition for _, event in events], pa.int32()),
                "offset": pa.array([number for number, _ in events], pa.int64()),
                "micros": pa.array([_micros(event) for _, event in events], pa.int64()),
            }
        )
        return spark.createDataFrame(rows).selectExpr("* EXCEPT (micros)", "timestamp_micros(micros) AS timestamp")

    def _from_files(self, spark: SparkSession, declared: Files, events: Sequence[tuple[int, Event]]) -> DataFrame:
        values = [event.payload for _, event in events]
        rows = pa.table(
            {
                "value": pa.array(values, pa.binary()),
                "file": pa.array([f"{declared.path}/given" for _ in events], pa.string()),
                "row": pa.array([number + 1 for number, _ in events], pa.int64()),
                "micros": pa.array([_micros(event) for _, event in events], pa.int64()),
                "size": pa.array([len(value or b"") for value in values], pa.int64()),
            }
        )
        shown = ("value", "file", "row", "timestamp_micros(micros) AS modified", "size")
        return spark.createDataFrame(rows).selectExpr(*shown)


def _headers(event: Event) -> list[dict[str, Any]] | None:
    return [{"key": key, "value": in_bytes(value)} for key, value in event.headers.items()] or None


def _micros(event: Event) -> int:
    return ((event.at or clock.now()) - _EPOCH) // timedelta(microseconds=1)
