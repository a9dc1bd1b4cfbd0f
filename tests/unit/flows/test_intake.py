"""Several sources of one flow: what is decided about a broken one is decided about that one alone."""

from __future__ import annotations

from typing import Any

import pytest

from lodestream.errors import SourceChanged, SourceGap
from lodestream.flows.intake import SourceIntake
from lodestream.sources.source import Position, Source


class Log(Source):
    """Numbers from `first` to `end`: what was before `first` is gone."""

    def __init__(self, name: str, end: int | None, first: int = 0) -> None:
        self.name, self.end, self.first = name, end, first

    def latest(self) -> Position | None:
        return None if self.end is None else {"next": self.end}

    def start(self, latest: Position) -> Position:
        return {"next": 0}

    def check(self, since: Position, latest: Position) -> None:
        if since["next"] < self.first:
            raise SourceGap(f"{self.name}: {since['next']} to {self.first} are gone")

    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        return {"next": min(latest["next"], since["next"] + rows)}

    def pending(self, since: Position, to: Position) -> int:
        return int(to["next"] - since["next"])

    def read(self, since: Position, to: Position) -> Any:
        raise AssertionError("nothing is read")

    def accept(self, since: Position, latest: Position) -> Position:
        return latest


def accepted(*sources: Source, **since: int) -> dict[str, int]:
    lookout = SourceIntake(sources)
    return {
        name: at["next"] for name, at in lookout.accepted({name: {"next": at} for name, at in since.items()}).items()
    }


def test_an_accepted_gap_of_one_source_leaves_what_another_still_has_to_be_read() -> None:
    gone, healthy = Log("gone", 90, first=40), Log("healthy", 50)
    with pytest.raises(SourceChanged):
        SourceIntake([gone, healthy]).span(None, {"gone": {"next": 90}, "healthy": {"next": 50}}, 10)
    assert accepted(gone, healthy, gone=10, healthy=20) == {"gone": 90, "healthy": 20}
    assert accepted(healthy, gone, gone=10, healthy=20) == {"gone": 90, "healthy": 20}


def test_a_source_that_was_never_read_begins_at_its_start_unless_that_is_gone_too() -> None:
    gone, healthy = Log("gone", 90, first=40), Log("healthy", 50)
    assert accepted(gone, healthy) == {"gone": 90, "healthy": 0}
    assert accepted(gone, Log("late", None), gone=10) == {"gone": 90}


def test_a_decision_about_a_source_that_is_gone_can_be_written_down() -> None:
    there, gone = Log("there", 50), Log("gone", None)
    lookout = SourceIntake([there, gone])
    to = lookout.accepted({"there": {"next": 20}, "gone": {"next": 10}})
    assert to == {"there": {"next": 20}}, "when it comes again, it is another one"
    assert lookout.asof(to) is None
    lookout.confirm(to)


class Unreadable(Log):
    """Its gap shows only when it is read."""

    def accept(self, since: Position, latest: Position) -> Position:
        return {"next": since["next"] + 1}


def test_what_only_reading_shows_is_accepted_of_the_one_source_it_can_be() -> None:
    assert accepted(Unreadable("one", 90), one=10) == {"one": 11}
    assert accepted(Unreadable("one", 90), Unreadable("two", 90), one=10, two=20) == {"one": 10, "two": 20}
