"""The oracle itself: its rules by hand, and that no order of arrival can change its answers."""

from __future__ import annotations

import random

from feed_model import Change, feed_rows, upserted, versions
from hypothesis import given
from hypothesis import strategies as st

ROWS = st.sampled_from([("a",), ("b",), ("c",)])
CHANGES = st.lists(
    st.builds(
        Change,
        key=st.sampled_from(["k", "l"]),
        row=ROWS,
        at=st.integers(0, 4),
        partition=st.integers(0, 2),
        offset=st.integers(0, 50),
        gone=st.booleans(),
    ),
    max_size=12,
    unique_by=lambda one: (one.partition, one.offset),
)


def change(row: str, at: int, *, offset: int = 0, partition: int = 0, gone: bool = False) -> Change:
    return Change("k", (row,), at, partition, offset, gone)


def test_a_delete_that_comes_before_its_insert_wins() -> None:
    assert upserted([change("-", 2, gone=True), change("a", 1, offset=1)]) == {}


def test_equal_sequences_are_decided_by_partition_then_offset() -> None:
    assert upserted([change("a", 1, partition=1, offset=3), change("b", 1, offset=9)]) == {"k": ("a",)}
    assert upserted([change("a", 1, offset=3), change("b", 1, offset=9)]) == {"k": ("b",)}


def test_a_late_change_splits_an_interval() -> None:
    first = [change("a", 1), change("c", 5, offset=1)]
    assert versions(first) == {("k", ("a",), 1, 5, False), ("k", ("c",), 5, None, True)}
    assert versions([*first, change("b", 3, offset=2)]) == {
        ("k", ("a",), 1, 3, False),
        ("k", ("b",), 3, 5, False),
        ("k", ("c",), 5, None, True),
    }


def test_a_delete_ends_an_interval_and_leaves_a_hole() -> None:
    assert versions([change("a", 1), change("-", 3, offset=1, gone=True), change("b", 7, offset=2)]) == {
        ("k", ("a",), 1, 3, False),
        ("k", ("b",), 7, None, True),
    }


@given(CHANGES, st.randoms(use_true_random=False))
def test_no_order_of_arrival_matters(changes: list[Change], chance: random.Random) -> None:
    shuffled = chance.sample(changes, len(changes))
    assert upserted(shuffled) == upserted(changes)
    assert versions(shuffled) == versions(changes)


@given(CHANGES)
def test_the_feed_of_any_slicing_adds_up_to_the_table(changes: list[Change]) -> None:
    held: dict[tuple[str, tuple[str, ...]], int] = {}
    before: dict[str, tuple[str, ...]] = {}
    for end in range(len(changes) + 1):
        after = upserted(changes[:end])
        for key, row, weight in feed_rows(before, after):
            held[key, row] = held.get((key, row), 0) + weight
        before = after
    assert {pair for pair, weight in held.items() if weight} == set(before.items())
    assert set(held.values()) <= {0, 1}


@given(CHANGES)
def test_the_current_versions_are_the_table(changes: list[Change]) -> None:
    current = {key: row for key, row, _, _, is_current in versions(changes) if is_current}
    assert current == upserted(changes)
