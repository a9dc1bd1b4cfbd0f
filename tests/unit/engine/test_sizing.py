"""Batches are sized to the target time, whatever waits."""

from __future__ import annotations

from lodestream.engine.sizing import Sizer


def drain(waiting: int, *, target: float, cap: int, fixed: float, per_row: float) -> list[int]:
    """The batch sizes a backlog is taken in, when a batch costs a fixed time and some per row."""
    sizer = Sizer(target, cap)
    sizes = []
    while waiting:
        rows = min(waiting, sizer.rows)
        waiting -= rows
        sizes.append(rows)
        sizer.learn(rows, fixed + rows * per_row)
    return sizes


def test_ten_million_waiting_events_do_not_make_one_giant_batch() -> None:
    sizes = drain(10_000_000, target=1.0, cap=500_000, fixed=0.2, per_row=5e-6)
    assert max(sizes) <= 500_000
    assert max(0.2 + rows * 5e-6 for rows in sizes) < 2.0


def test_a_backlog_of_cheap_rows_is_taken_in_large_batches() -> None:
    sizes = drain(10_000_000, target=1.0, cap=500_000, fixed=0.2, per_row=1e-7)
    assert max(sizes) == 500_000
    assert len(sizes) < 40


def test_expensive_rows_shrink_the_batch_toward_the_target() -> None:
    sizes = drain(400_000, target=1.0, cap=500_000, fixed=0.2, per_row=2e-4)
    assert max(0.2 + rows * 2e-4 for rows in sizes[4:]) <= 1.4


def test_a_fixed_cost_above_the_target_does_not_shrink_batches_to_nothing() -> None:
    assert min(drain(200_000, target=0.1, cap=500_000, fixed=0.5, per_row=1e-6)[:-1]) >= 1_000


def test_a_small_batch_that_finishes_early_says_nothing_about_larger_ones() -> None:
    sizer = Sizer(1.0, 500_000)
    before = sizer.rows
    sizer.learn(10, 0.05)
    assert sizer.rows == before


def test_the_cap_holds_from_the_first_batch() -> None:
    assert Sizer(1.0, 50).rows == 50


def test_large_rows_make_batches_of_fewer_rows_from_the_next_one_on() -> None:
    sizer = Sizer(1.0, 500_000, most_bytes=100_000_000)
    sizer.learn(20_000, 0.1, row_bytes=1_000_000)
    assert sizer.rows == 100
    sizer.learn(100, 0.1, row_bytes=200_000_000)
    assert sizer.rows == 1, "a row is never too large for a batch of its own"


def test_small_rows_after_large_ones_let_batches_grow_again() -> None:
    sizer = Sizer(1.0, 500_000, most_bytes=100_000_000)
    sizer.learn(20_000, 0.1, row_bytes=1_000_000)
    sizes = []
    for _ in range(20):
        sizes.append(sizer.rows)
        sizer.learn(sizer.rows, 0.1, row_bytes=100)
    assert sizes == sorted(sizes)
    assert sizes[-1] > 100_000
