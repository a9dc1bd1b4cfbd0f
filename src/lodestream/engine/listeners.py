"""Who hears the events of every run, besides its log and its caller. A new one is one more entry of `_LISTENERS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from lodestream.engine.event_table import EventTable
from lodestream.observe import EventLog
from lodestream.planning.project import Project


@dataclass(frozen=True, slots=True)
class Heard:
    """What a listener may need of the run that it hears: it subscribes to `events` when it is made."""

    project: Project
    spark: SparkSession
    events: EventLog


class HouseListener(Protocol):
    """Made before the first event. `close` comes after the last one; not, where Java is gone, if it `needs_java`."""

    needs_java: bool

    def start(self) -> None: ...

    def close(self) -> None: ...


class Listeners:
    def __init__(self, listeners: Sequence[HouseListener]) -> None:
        self._listeners = listeners

    def start(self) -> None:
        for one in self._listeners:
            one.start()

    def close(self, *, java: bool) -> None:
        for one in self._listeners:
            if java or not one.needs_java:
                one.close()


def house_listeners(heard: Heard) -> Listeners:
    return Listeners([one for made in _LISTENERS if (one := made(heard)) is not None])


def _event_table(heard: Heard) -> HouseListener:
    return EventTable(heard.spark, heard.project.config.catalog.name, heard.events)


_LISTENERS: tuple[Callable[[Heard], HouseListener | None], ...] = (_event_table,)
