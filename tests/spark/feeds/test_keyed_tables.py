"""Keyed tables, their feeds and what is made from them: random changes in random batches, and a kill at every point."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from feed_line import ITEMS, SMALL, VERSIONS, FeedLine, Killed, killed, some_day
from feed_model import Change

from lodestream import failpoints
from lodestream.flows import keyed_batch, keyed_derived, keyed_facts
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
    for number in range(ROUNDS):
        for _ in range(chance.randrange(1, 4)):
            line.changes += some_changes(chance, offsets, chance.choice([3, 60, 250]))
            list_at_most(chance.choice([5, 4_000]), monkeypatch)
            failpoints.arm(*points[number % len(points)], killed)
            try:
                line.drive(line.flows())
            except Killed:
                failpoints.disarm()
            if chance.random() < 0.5:
                break
        failpoints.disarm()
        line.drive(line.flows())
        line.check()
    for table in (ITEMS, SMALL, VERSIONS):
        line.check_feed(table)
    line.check_readers(ITEMS)
    raw = line.project.pipeline.changes("items_raw", line.spark).collect()
    assert len(raw) == len(line.changes)
    assert {row._weight for row in raw} == {1}  # a table that only grows is its own feed


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
