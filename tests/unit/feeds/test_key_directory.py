"""The directory of a table's keys: what is there is always found, and whatever else moved the table ends it."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from lodestream.flows.batch import Facts
from lodestream.flows.directory import directory as directories
from lodestream.flows.directory import directory as keepers
from lodestream.flows.directory.directory import Addresses, DirectoryKeeper, KeyDirectory
from lodestream.tables.snapshot import Snapshot

ADDRESSES = Addresses((("id", "string"),), "day")
rows = some.lists(some.tuples(some.integers(-(2**47), 2**47 - 1), some.integers(-(2**15), 2**15 - 1)), max_size=40)


def entry(most: int, day: int) -> int:
    """Most of a key's hash, beside a day."""
    return (most << 16) | (day & 0xFFFF)


@given(stored=rows, came=rows, others=rows)
def test_every_row_that_is_there_is_found_on_its_day(stored: Any, came: Any, others: Any) -> None:
    found = KeyDirectory(ADDRESSES, np.array([entry(*row) for row in stored], dtype=np.int64), 1)
    found.follow([entry(*row) for row in came], 2)
    held = {*stored, *came}
    asked = [most for most, _ in [*held, *others]]
    there, days = found.find([most << 16 for most in asked])
    known = {most for most, _ in held}
    assert there == [most in known for most in asked]
    assert days == sorted({day for most, day in held if most in asked})
    there, _ = found.find([entry(*row) for row in others], any_day=False)
    assert there == [row in held for row in others]


def test_a_table_without_days_notes_the_whole_hash() -> None:
    found = KeyDirectory(Addresses((("id", "string"),), None), np.array([entry(7, 1)], dtype=np.int64), 1)
    assert found.find([entry(7, 1), entry(7, 2)])[0] == [True, False], (
        "a part of a hash is one of too few among millions"
    )


def test_recent_rows_are_found_after_they_have_joined_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories, "_MOST_RECENT", 1)
    found = KeyDirectory(ADDRESSES, np.array([entry(1, 5)], dtype=np.int64), 1)
    found.follow([entry(2, 6), entry(3, 7)], 2)
    assert found.find([1 << 16, 2 << 16, 4 << 16]) == ([True, True, False], [5, 6])


def test_batches_that_are_applied_while_it_is_made_are_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, making = kept(monkeypatch)
    assert keeper.at(snapshot(1)) is None
    keeper.follow(Facts(came=1, state=1, entries=(entry(8, 1),)), snapshot(2, 1))
    making.set_result(KeyDirectory(ADDRESSES, np.array([entry(7, 1)], dtype=np.int64), 1))
    found = keeper.at(snapshot(2, 1))
    assert found is not None
    assert found.find([7 << 16, 8 << 16])[0] == [True, True]


@pytest.mark.parametrize(
    "facts",
    [
        Facts(came=1, state=9, entries=(1,)),  # made on another snapshot than the one before
        Facts(came=2, state=1, entries=(1,)),  # too many rows to tell of each
    ],
)
def test_a_snapshot_that_nobody_explained_ends_the_directory(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, making = kept(monkeypatch)
    making.set_result(KeyDirectory(ADDRESSES, np.array([entry(7, 1)], dtype=np.int64), 1))
    assert keeper.at(snapshot(1)) is not None
    keeper.follow(facts, snapshot(2, 1))
    monkeypatch.setattr(keepers, "CALM", 9)
    assert keeper.at(snapshot(2, 1)) is None


def test_compaction_and_deletes_leave_the_directory_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, making = kept(monkeypatch)
    making.set_result(KeyDirectory(ADDRESSES, np.array([entry(7, 1)], dtype=np.int64), 1))
    assert keeper.at(snapshot(1)) is not None
    compacted, deleted = snapshot(2, 1, "replace", added=100), snapshot(3, 2, "delete")
    found = keeper.at(deleted, [compacted, snapshot(1)])
    assert found is not None
    assert (found.state, found.find([7 << 16])[0]) == (3, [True])
    keeper.follow(Facts(came=1, state=3, entries=(entry(8, 1),)), snapshot(4, 3, added=1))
    assert keeper.at(snapshot(4, 3, added=1), [deleted, compacted, snapshot(1)]) is found
    monkeypatch.setattr(keepers, "CALM", 9)
    others = snapshot(5, 4, added=1)
    assert keeper.at(snapshot(6, 5, "replace", added=9), [others, snapshot(4, 3)]) is None, "rows nobody told us of"


def test_a_directory_that_cannot_be_made_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, making = kept(monkeypatch)
    making.set_exception(OSError("no memory"))
    assert keeper.at(snapshot(1)) is None


def test_directories_made_again_share_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each session holds a connection to the catalog for as long as the process lives."""
    opened: list[Any] = []
    spark = MagicMock()
    spark.newSession.side_effect = lambda: opened.append(MagicMock()) or opened[-1]
    keeper = DirectoryKeeper(SimpleNamespace(spark=spark, catalog="lode"), "silver.orders", ADDRESSES)  # type: ignore[arg-type]
    monkeypatch.setattr(keepers.KeyDirectory, "of", classmethod(lambda cls, *given: given))
    read = [keeper._made(ADDRESSES, state)[1] for state in (1, 2, 3)]  # type: ignore[index]
    assert len(opened) == 1
    assert len(read) == 3


def kept(monkeypatch: pytest.MonkeyPatch) -> tuple[DirectoryKeeper, Future[KeyDirectory]]:
    making: Future[KeyDirectory] = Future()
    monkeypatch.setattr(keepers, "CALM", 1)
    monkeypatch.setattr(keepers, "FEWEST_ROWS", 1)
    monkeypatch.setattr(keepers, "beside", lambda make: making)
    lake: Any = None  # not asked: the directory is made above
    return DirectoryKeeper(lake, "silver.orders", ADDRESSES), making


def snapshot(number: int, parent: int | None = None, operation: str = "append", added: int = 0) -> Snapshot:
    return Snapshot(number, parent, operation, 0, {"total-records": "100", "added-records": str(added)})
