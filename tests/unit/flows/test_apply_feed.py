"""What follows a publication of a keyed table is done, whatever fails on the way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lodestream.errors import CatalogUnavailable
from lodestream.flows.applying.keyed import ApplyFeed
from lodestream.flows.batch import Outcome, Published
from lodestream.flows.writing.siblings import Level
from lodestream.tables.publish import Base
from lodestream.tables.snapshot import Snapshot


class Follower:
    """Fails as often as it is told, then has applied everything."""

    def __init__(self) -> None:
        self.fails = 0
        self.applied = 0

    def catch_up(self, _known: object = None) -> Level:
        if self.fails:
            self.fails -= 1
            raise CatalogUnavailable("the catalog did not answer")
        self.applied += 1
        here = Snapshot(1, None, "append", 0, {})
        return Level(here, here, 0, cast("Any", None), cast("Any", None))


def applying(follower: Follower) -> ApplyFeed:
    return ApplyFeed(cast("Any", SimpleNamespace(opened=SimpleNamespace(follower=follower))))


def test_an_empty_batch_that_could_not_be_applied_is_applied_by_the_next_step() -> None:
    follower = Follower()
    after = applying(follower)
    after.follow(None)
    assert after.follow(None) is None
    assert follower.applied == 1, "nothing is asked of a table that stands at the head of its feed"
    moved = Published("silver.orders", 2, 7, {}, {"in": 0, "out": 0}, 0, True, {"total": 0.0})
    follower.fails = 1
    with pytest.raises(CatalogUnavailable):
        after.follow(Outcome(moved, cast("Base", None), None))
    after.follow(None)
    assert follower.applied == 2


def test_a_decision_is_applied_by_the_step_that_follows_it() -> None:
    follower = Follower()
    after = applying(follower)
    after.follow(None)
    after.expect()
    after.follow(None)
    assert follower.applied == 2
