"""After the feed is published it is applied to the table: before the next batch at the latest."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from lodestream.flows.applying.follower import Follower
from lodestream.flows.batch import Facts, Outcome, Published
from lodestream.flows.parts import After
from lodestream.flows.writing.siblings import Level, Siblings
from lodestream.tables.snapshot import position_in


class ApplyFeed(After):
    """A crash between the feed and the table leaves the table behind: the first step after it catches up."""

    def __init__(self, follower: Callable[[], Follower], siblings: Callable[[], Siblings]) -> None:
        self._follower = follower
        self._siblings = siblings
        self._behind = True

    def expect(self) -> None:
        """A batch that looks at nothing is on its way to the feed."""
        self._behind = True

    def catch_up(self) -> Level:
        """Before a batch is made: it is built on a table that has applied the whole feed."""
        self._behind = True
        return self._follower().catch_up()

    def follow(self, outcome: Outcome | None) -> Published | None:
        if outcome is None and not self._behind:
            return None
        self._behind = True  # until it is done: what fails below is tried again by the next step
        began = time.perf_counter()
        facts = outcome.facts if outcome else None
        level = self._follower().catch_up({outcome.published.snapshot: facts} if outcome and facts else {})
        self._behind = False
        if outcome is not None and facts is not None:
            self._note_keys(facts, outcome.published.snapshot, level)
        seconds = time.perf_counter() - began
        if outcome is None:
            return self._caught_up(level, seconds) if level.steps else None
        done = outcome.published
        return replace(done, seconds={**done.seconds, "apply": seconds, "total": done.seconds["total"] + seconds})

    def _note_keys(self, facts: Facts, snapshot: int, level: Level) -> None:
        siblings = self._siblings()
        place = position_in(level.state, siblings.feed)
        if place is not None and int(place["snapshot"]) == snapshot:
            siblings.directory.follow(facts, level.state)
            # The marks only grow.
            marks = Facts(came=facts.marks, state=facts.marks_state, entries=facts.remembered)
            siblings.marked.follow(marks, level.marks)

    def _caught_up(self, level: Level, seconds: float) -> Published | None:
        """The table had been behind its feed, from before a crash: its readers have something new."""
        stamp = level.state.stamp
        if stamp is None:
            return None
        rows = {"in": 0, "out": level.state.added_rows}
        spent = {"apply": seconds, "total": seconds}
        return Published(self._siblings().table, stamp.batch, level.state.id, stamp.positions, rows, 0, True, spent)
