"""Keyed tables, their feeds and what is made from them: random changes in random batches, and a kill at every point."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from feed_line import BRONZE, ITEMS, SMALL, VERSIONS, FeedLine, Killed, killed, some_day
from feed_model import Change
from pyiceberg.table import DataScan

from lodestream import failpoints
from lodestream.engine.status import read_status
from lodestream.errors import AnotherWriter, NotOurTable
from lodestream.flows.directory import directory
from lodestream.flows.writing import derived, feed_rows, upserts
from lodestream.planning.plan import make_plan
from lodestream.tables import find
from lodestream.tables.find import among
from lodestream.tables.inspect import Inspector
from lodestream.tables.live_rows import counted
from lodestream.tables.swap import Swapper

pytestmark = pytest.mark.usefixtures("summer_time", "size")
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
    # Made at once, the very batch that asks for a directory uses it.
    keep_directories(monkeypatch, at_once=chance.random() < 0.5)
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
    line.check_gold_reader()
    line.check_status()
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


def test_a_batch_counts_rows_of_the_table_and_not_of_its_feed(line: FeedLine) -> None:
    day = some_day(0)
    line.changes += [Change(key, (1, day), 1, 0, place) for place, key in enumerate("abc")]
    flows = line.flows()
    batches = [line.batches(flows)]
    update, delete, new = Change("a", (2, day), 2, 0, 3), Change("b", (0, day), 2, 0, 4, gone=True), ("d", (9, day))
    line.changes += [update, delete, Change(*new, 2, 0, 5), Change("zz", (0, day), 2, 0, 6, gone=True)]
    batches.append(line.batches(flows))
    counts = [{name: (rows["out"], rows["upserted"], rows["deleted"]) for name, rows in one.items()} for one in batches]
    assert counts[0] == {ITEMS: (3, 3, 0), VERSIONS: (3, 3, 0), SMALL: (3, 3, 0)}
    assert counts[1][ITEMS] == (2, 2, 1), "one was updated and one is new; of two deletes one found its row"
    assert counts[1][SMALL] == (1, 1, 1), "what is too heavy never came"
    assert counts[1][VERSIONS] == (4, 4, 0), "a history ends versions and adds new ones: none goes"
    line.check()


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


def test_a_table_of_an_earlier_version_is_refused_in_words_and_made_again(line: FeedLine) -> None:
    day = some_day(0)
    line.changes += [Change("a", (1, day), 1, 0, 0), Change("b", (1, day), 1, 0, 1), Change("a", (2, day), 2, 0, 2)]
    only = (BRONZE, ITEMS)
    line.drive({name: flow for name, flow in line.flows().items() if name in only})
    assert not make_plan(line.project).blocked
    line.spark.sql(f"ALTER TABLE lode.{ITEMS} ADD COLUMNS (_lode struct<by_0: bigint, gone: boolean>)")
    line.changes += [Change("b", (3, day), 3, 0, 3)]
    said = [str(finding) for finding in make_plan(line.project).findings if finding.severity == "error"]
    assert len(said) == 1
    assert f"{ITEMS} was written by an earlier version" in said[0]
    with pytest.raises(NotOurTable, match=rf"earlier version(.|\n)*drop {ITEMS}, {ITEMS}__changes and {ITEMS}__marks"):
        line.drive({name: flow for name, flow in line.flows().items() if name in only})
    line.spark.sql(f"DROP TABLE lode.{ITEMS}")
    line.drive({name: flow for name, flow in line.flows().items() if name in only})
    assert _weights(line) == {("a", 2), ("b", 3)}
    line.check_feed(ITEMS)


def test_an_ordinary_batch_searches_by_the_directory_and_swaps_rows_at_their_places(
    line: FeedLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fall-back to a search in every file, or for the rows that go, gives the same rows and would go unnoticed."""
    keep_directories(monkeypatch, at_once=True)
    day, flows = some_day(0), line.flows()
    line.changes += [Change(f"k{number}", (1, day), 1, 0, number) for number in range(40)]
    flows[BRONZE].step(100)
    assert flows[ITEMS].step(100) is not None
    searched: list[list[Any]] = []

    def listed(column: str, values: Sequence[Any], kind: Any) -> str | None:
        searched.append(sorted(values))
        return among(column, values, kind)

    monkeypatch.setattr(find, "among", listed)
    monkeypatch.setattr(Swapper, "replace", lambda *_, **__: pytest.fail("looked for rows whose places are known"))
    line.changes += [Change("k3", (2, day), 2, 0, 50), Change("k4", (0, day), 2, 0, 51, gone=True)]
    line.changes += [Change(f"new{number}", (1, day), 2, 0, 60 + number) for number in range(20)]
    flows[BRONZE].step(100)
    assert flows[ITEMS].step(100) is not None
    kept = {(f"k{number}", 1) for number in range(40) if number not in (3, 4)}
    assert _weights(line) == {("k3", 2)} | kept | {(f"new{number}", 1) for number in range(20)}
    assert searched == [["k3", "k4"]], "new keys were searched in the files"
    searched.clear()
    line.changes += [Change("k4", (7, day), 1, 0, 90), Change("k3", (3, day), 3, 0, 91)]  # k4 comes after its delete
    flows[BRONZE].step(100)
    assert flows[ITEMS].step(100) is not None
    assert searched == [["k3", "k4"], ["k4"]], "keys without a mark were searched in the marks"
    assert {row for row in _weights(line) if row[0] in ("k3", "k4")} == {("k3", 3)}


def _weights(line: FeedLine) -> set[tuple[str, int]]:
    return {(row.id, row.weight) for row in line.rows(ITEMS)}


def keep_directories(monkeypatch: pytest.MonkeyPatch, *, at_once: bool) -> None:
    """As large tables do, from the first batch on."""
    monkeypatch.setattr(directory, "FEWEST_ROWS", 1)
    monkeypatch.setattr(directory, "CALM", 1)
    if at_once:
        monkeypatch.setattr(directory, "beside", made_now)


def made_now(make: Callable[[], Any]) -> Future[Any]:
    made: Future[Any] = Future()
    made.set_result(make())
    return made


def list_at_most(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old rows are found by lists of keys, or by a join where there are more keys than this."""
    for module in (find, feed_rows, derived, upserts):
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


def test_a_compacted_table_is_counted_without_a_look_at_its_rows(
    line: FeedLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = [some_day(0), some_day(1)]
    only = (BRONZE, ITEMS)
    flows = {name: flow for name, flow in line.flows().items() if name in only}

    def change(*changes: tuple[str, int, bool]) -> None:
        offset = len(line.changes)
        for number, (key, day, gone) in enumerate(changes, start=offset):
            line.changes.append(Change(key, (number, days[day]), number + 1, 0, number, gone=gone))
        line.drive(flows)

    change(*[(f"{day}-{key}", day, False) for day in (0, 1) for key in "abcdef"])
    change(("0-a", 0, False), ("0-b", 0, True), ("1-a", 1, False), ("1-b", 1, True))
    # One day is compacted: its delete files stay, and are about rows that are gone.
    options = "options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'false')"
    where = f"where => 'day = DATE \"{days[0]}\"'"
    line.spark.sql(f"CALL lode.system.rewrite_data_files(table => '{ITEMS}', {where}, {options})")
    monkeypatch.setattr(Inspector, "look", lambda *_: pytest.fail("the history tells it"))

    def shown() -> int | None:
        return next(one.rows for one in read_status(line.project).tables if one.name == ITEMS)

    head = line.lake.store(ITEMS).head()
    assert head is not None
    assert (head.operation, head.live_rows) == ("replace", 8), "the totals alone are wrong"
    assert shown() == len(line.rows(ITEMS)) == 10
    change(("0-c", 0, False), ("1-c", 1, True), ("1-z", 1, False))
    assert shown() == len(line.rows(ITEMS)) == 10
    later = f"TIMESTAMP_MILLIS({int(time.time() * 1000) + 60_000})"
    line.spark.sql(f"CALL lode.system.expire_snapshots(table => '{ITEMS}', retain_last => 1, older_than => {later})")
    assert len(list(line.lake.store(ITEMS).ancestors(line.lake.store(ITEMS).head()))) == 1
    assert shown() == 10, "the last batch noted it"
    monkeypatch.undo()
    monkeypatch.setattr(DataScan, "to_arrow_batch_reader", lambda *_: pytest.fail("rows were read"))
    monkeypatch.setattr(DataScan, "count", lambda *_: pytest.fail("rows were read"))
    view = Inspector(line.project.config).look(ITEMS)
    assert view is not None
    assert counted(view) == 10, "manifests and delete files tell it as well"
