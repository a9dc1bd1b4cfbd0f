"""Keyed tables, their feeds and what is made from them: random changes in random batches, and a kill at every point."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from feed_line import BRONZE, ITEMS, SMALL, VERSIONS, FeedLine, Killed, killed, some_day
from feed_model import Change

from lodestream import failpoints
from lodestream.errors import AnotherWriter
from lodestream.flows.keyed import batch as keyed_batch
from lodestream.flows.keyed import derived as keyed_derived
from lodestream.flows.keyed import facts as keyed_facts
from lodestream.flows.keyed import keeper
from lodestream.tables import find

SEED = int(os.environ.get("LODE_FEED_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
ROUNDS = int(os.environ.get("LODE_FEED_ROUNDS", "4"))
KEYS = 120
POINTS = [
    ("apply.before", ITEMS),
    ("apply.between", ITEMS),
    ("apply.after", ITEMS),
    ("publish.before", ITEMS),
    ("publish.swapped", ITEMS),
    ("stage.after", f"{ITEMS}__changes"),
    ("publish.swapped", f"{ITEMS}__changes"),
    ("publish.swapped", f"{ITEMS}__marks"),
    ("apply.before", SMALL),
    ("stage.after", SMALL),
    ("apply.between", VERSIONS),
    ("publish.swapped", f"{VERSIONS}__changes"),
    ("publish.before", VERSIONS),
]


@pytest.fixture
def line(lake: Any) -> Iterator[FeedLine]:
    yield FeedLine(lake.config, lake.spark)
    failpoints.disarm()


def test_random_changes_in_random_batches_with_kills_equal_the_oracle(
    line: FeedLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sys.stdout.write(f"seed {SEED}: LODE_FEED_SEED={SEED} repeats it, LODE_FEED_ROUNDS makes it longer\n")
    chance = random.Random(SEED)
    offsets = [0, 0, 0]
    points = chance.sample(POINTS, len(POINTS))
    keep_directories(chance, monkeypatch)
    flows: dict[str, Any] | None = None
    for number in range(ROUNDS):
        for _ in range(chance.randrange(1, 4)):
            line.changes += some_changes(chance, offsets, chance.choice([3, 60, 250]))
            list_at_most(chance.choice([5, 4_000]), monkeypatch)
            failpoints.arm(*points[number % len(points)], killed)
            flows = flows or line.flows()
            try:
                line.drive(flows)
            except Killed:
                failpoints.disarm()
                flows = None  # a fresh process knows nothing but what the tables hold
            if chance.random() < 0.5:
                break
        failpoints.disarm()
        flows = flows or line.flows()
        line.drive(flows)
        line.check()
    for table in (ITEMS, SMALL, VERSIONS):
        line.check_feed(table)
    line.check_readers(ITEMS)
    raw = line.project.pipeline.changes("items_raw", line.spark).collect()
    assert len(raw) == len(line.changes)
    assert {row._weight for row in raw} == {1}  # a table that only grows is its own feed


def test_a_feed_that_is_rolled_back_takes_its_table_and_its_marks_along(line: FeedLine) -> None:
    day = some_day(0)
    line.changes += [Change("a", (1, day), 1, 0, 0), Change("b", (1, day), 1, 0, 1)]
    only = (BRONZE, ITEMS)
    line.drive({name: flow for name, flow in line.flows().items() if name in only})
    feed = line.lake.store(f"{ITEMS}__changes")
    before = feed.head()
    assert before is not None
    line.changes += [Change("a", (2, day), 2, 0, 2), Change("b", (0, day), 2, 0, 3, gone=True)]
    line.drive({name: flow for name, flow in line.flows().items() if name in only})
    assert _weights(line) == {("a", 2)}
    feed.refresh()
    feed.rollback(before.id)
    line.drive({ITEMS: line.flows()[ITEMS]})  # the same input once more, on the table as it was
    assert _weights(line) == {("a", 2)}
    line.check_feed(ITEMS)


def test_two_runs_of_one_table_apply_each_change_once(line: FeedLine) -> None:
    day = some_day(0)
    line.changes += [Change("a", (1, day), 1, 0, 0), Change("b", (1, day), 1, 0, 1)]
    first, second = line.flows(), line.flows()
    first[BRONZE].step(100)

    def meanwhile() -> None:
        failpoints.disarm()
        assert second[ITEMS].step(100) is not None  # finds the feed published, and applies it

    failpoints.arm("apply.between", ITEMS, meanwhile)
    assert first[ITEMS].step(100) is not None
    assert _weights(line) == {("a", 1), ("b", 1)}
    line.changes += [Change("a", (2, day), 2, 0, 2)]
    first[BRONZE].step(100)
    assert second[ITEMS].step(100) is not None
    line.changes += [Change("b", (3, day), 3, 0, 3)]
    first[BRONZE].step(100)
    with pytest.raises(AnotherWriter):
        first[ITEMS].step(100)
    assert second[ITEMS].step(100) is not None
    assert _weights(line) == {("a", 2), ("b", 3)}
    line.check_feed(ITEMS)


def _weights(line: FeedLine) -> set[tuple[str, int]]:
    return {(row.id, row.weight) for row in line.rows(ITEMS)}


def keep_directories(chance: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """As large tables do, from the first batch on."""
    monkeypatch.setattr(keeper, "FEWEST_ROWS", 1)
    monkeypatch.setattr(keeper, "CALM", 1)
    if chance.random() < 0.5:  # made at once, so that the very batch that asks for it uses it
        monkeypatch.setattr(keeper, "beside", at_once)


def at_once(make: Callable[[], Any]) -> Future[Any]:
    made: Future[Any] = Future()
    made.set_result(make())
    return made


def list_at_most(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old rows are found by lists of keys, or by a join where there are more keys than this."""
    for module in (find, keyed_batch, keyed_derived, keyed_facts):
        monkeypatch.setattr(module, "MOST_KEYS", keys)


def some_changes(chance: random.Random, offsets: list[int], count: int) -> list[Change]:
    """Updates, deletes, late ones, equal sequences, the same event again, rows that change nothing or move."""
    found: list[Change] = []
    for _ in range(count):
        partition = chance.randrange(3)
        offsets[partition] += chance.randrange(1, 3)
        row = (chance.randrange(10), some_day(chance.randrange(4)))
        key = f"k{chance.randrange(KEYS)}" if chance.random() > 0.02 else None
        at = chance.randrange(12) if chance.random() > 0.02 else None
        if found and chance.random() < 0.15:  # the same event again
            key, row, at = found[-1].key, found[-1].row, found[-1].at
        found.append(Change(key, row, at, partition, offsets[partition], chance.random() < 0.2))
    return found
