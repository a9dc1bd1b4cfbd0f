"""Brings one sink of one table up to date, and remembers where it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from lodestream.failpoints import reach
from lodestream.serving.feed import TableFeed
from lodestream.serving.position import Position
from lodestream.serving.sink import Delivery, Outlet, Sink
from lodestream.tables.sink_notes import note_key
from lodestream.tables.sink_positions import SinkPositions

# Seconds between two notes of a position while a sink catches up: each is a commit, and a note may be behind.
_NOTE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a look brought to a sink. `refreshed`: the whole table came in place of changes that are gone."""

    deliveries: int = 0
    refreshed: bool = False

    def __add__(self, other: Delivered) -> Delivered:
        return Delivered(self.deliveries + other.deliveries, self.refreshed or other.refreshed)


class Deliverer:
    """Used by one thread. After a failure of the sink everything is asked anew, as a new process would."""

    def __init__(self, feed: TableFeed, sink: Sink, positions: SinkPositions) -> None:
        self._feed = feed
        self._sink = sink
        self._positions = positions
        self._key = note_key(feed.table, sink.label)
        self._outlet: Outlet | None = None
        self._at: Position | None = None
        self._unnoted: str | None = None
        self._noted_at = 0.0
        self._seen: object = None

    def catch_up(self, proceed: Callable[[], bool] = lambda: True) -> Delivered:
        """Deliver until nothing is due, or `proceed` says no. Raises what the sink raises."""
        version = self._feed.version()  # before the look: what is committed meanwhile is seen by the next one
        if version is not None and version == self._seen:
            self._note()
            return Delivered()
        found = Delivered()
        try:
            while (one := self._look(proceed)).deliveries:
                found += one
        except BaseException:
            self.close()
            raise
        self._note()
        if proceed():
            self._seen = version
        return found

    def close(self) -> None:
        """The outlet is gone; the position that the project has to note is not."""
        outlet, self._outlet, self._seen = self._outlet, None, None
        if outlet is not None:
            with suppress(Exception):
                outlet.close()

    def _look(self, proceed: Callable[[], bool]) -> Delivered:
        outlet = self._opened()
        began, found = self._at, Delivered()
        for delivery in self._feed.due(self._sink, self._at):
            if not proceed():
                break
            self._give(outlet, delivery)
            found += Delivered(1, delivery.whole and not self._sink.latest and began is not None)
        return found

    def _opened(self) -> Outlet:
        if self._outlet is None:
            self._outlet = self._sink.open(self._feed.table)
            kept = self._unnoted or self._positions.read(self._key)
            stood = self._outlet.position(kept)
            self._at = Position.parse(stood) if stood is not None else None
            # A sink that knows better than the project, after a kill or a restored backup, is where it says.
            self._unnoted = stood if stood not in (None, kept) else self._unnoted
        return self._outlet

    def _give(self, outlet: Outlet, delivery: Delivery) -> None:
        reach("sink.before", self._feed.table)
        outlet.deliver(delivery)
        reach("sink.delivered", self._feed.table)
        self._at, self._unnoted = Position.parse(delivery.position), delivery.position
        if time.monotonic() - self._noted_at >= _NOTE_SECONDS:
            self._note()

    def _note(self) -> None:
        if self._unnoted is None:
            return
        self._positions.remember(self._key, self._unnoted)
        self._unnoted, self._noted_at = None, time.monotonic()
