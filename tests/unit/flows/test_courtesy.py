"""The keeper of a table waits for a guest as long as that may help, and never for one that is gone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lodestream.flows.silver.courtesy import Courtesy, put_up, take_down
from lodestream.tables.memory import MemoryStore, MemoryTable
from lodestream.tables.store import MAIN


class Clock:
    """Time passes only while somebody sleeps; `then` happens meanwhile."""

    def __init__(self) -> None:
        self.now = 0.0
        self.then: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.then()


@pytest.fixture
def table() -> MemoryTable:
    return MemoryTable()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(table: MemoryTable) -> MemoryStore:
    store = MemoryStore(table, lambda _step: None)
    store.refresh()
    return store


def test_nobody_is_waited_for_where_no_guest_is(table: MemoryTable, clock: Clock) -> None:
    assert not Courtesy(lambda: clock.now, clock.sleep).let_pass(opened(table), usual=9.0)
    assert clock.now == 0


def test_a_guest_that_publishes_is_let_pass(table: MemoryTable, clock: Clock) -> None:
    guest, keeper = opened(table), opened(table)
    put_up(guest, "r1")
    keeper.refresh()

    def publishes() -> None:
        if clock.now > 0.5:
            table.set(MAIN, table.add(table.refs[MAIN], "append", {}))

    clock.then = publishes
    assert Courtesy(lambda: clock.now, clock.sleep).let_pass(keeper, usual=1.0)
    assert clock.now < 1


def test_patience_ends_with_a_slow_guest_and_for_one_that_was_killed(table: MemoryTable, clock: Clock) -> None:
    guest, keeper = opened(table), opened(table)
    put_up(guest, "r1")
    keeper.refresh()
    courtesy = Courtesy(lambda: clock.now, clock.sleep)
    assert not courtesy.let_pass(keeper, usual=0.5)
    assert 2 <= clock.now < 2.5
    clock.now = 30.0  # the sign has not moved since
    assert not courtesy.let_pass(keeper, usual=0.5)
    assert clock.now == 30
    # It moves along with the table as long as its guest lives.
    table.set(MAIN, table.add(table.refs[MAIN], "append", {}))
    guest.refresh()
    put_up(guest, "r1")
    keeper.refresh()
    clock.then = lambda: take_down(guest, "r1")
    assert not courtesy.let_pass(keeper, usual=0.5)
    assert 30 < clock.now < 31, "it has left without publishing"
