"""A source that only counts, for the tests' own events: everything up to `end` has arrived."""

from __future__ import annotations

from lodestream.sources.source import Position, Source


class Counted(Source):
    """Subclasses say how far it reaches, as an attribute or a property `end`, and read."""

    name = "kafka"
    end: int

    def latest(self) -> Position:
        return {"next": self.end}

    def start(self, latest: Position) -> Position:
        return {"next": 0}

    def check(self, since: Position, latest: Position) -> None:
        assert since["next"] <= latest["next"]

    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        return {"next": min(latest["next"], since["next"] + rows)}

    def pending(self, since: Position, to: Position) -> int:
        return int(to["next"] - since["next"])

    def accept(self, since: Position, latest: Position) -> Position:
        return latest
