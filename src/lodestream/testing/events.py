"""Events that a test gives to a pipeline: the Bronze rows are those of the declared source, no broker and no folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lodestream import clock
from lodestream.errors import ConfigError
from lodestream.pipeline import Table
from lodestream.sources.kinds import kind_of
from lodestream.sources.source import Position, Source
from lodestream.testing.encode import in_bytes
from lodestream.testing.rows import frame_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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

    @property
    def key_bytes(self) -> bytes | None:
        return in_bytes(self.key)

    @property
    def header_bytes(self) -> Mapping[str, bytes | None]:
        return {key: in_bytes(value) for key, value in self.headers.items()}

    @property
    def micros(self) -> int:
        return ((self.at or clock.now()) - _EPOCH) // timedelta(microseconds=1)


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
        declared = self._table.source
        stand_in = kind_of(declared).stand_in if declared is not None else None
        if stand_in is not None:
            return stand_in(declared, self.spark, events)
        return frame_of(self.spark, [event.value for _, event in events], self.ddl)
