"""The keeper of a table waits for a guest as long as that may help, and never for one that is gone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lodestream.flows.guests.waiting import GuestGate, ask_to_wait, stop_asking
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


def gate(clock: Clock, usual: float) -> GuestGate:
    """Of a run whose batches take so many seconds."""
    made = GuestGate(lambda: clock.now, clock.sleep)
    made.took(usual)
    return made


def opened(table: MemoryTable) -> MemoryStore:
    store = MemoryStore(table, lambda _step: None)
    store.refresh()
    return store


def test_nobody_is_waited_for_where_no_guest_is(table: MemoryTable, clock: Clock) -> None:
    assert not gate(clock, 9.0).let_pass(opened(table))
    assert clock.now == 0


def test_a_guest_that_publishes_is_let_pass(table: MemoryTable, clock: Clock) -> None:
    guest, keeper = opened(table), opened(table)
    ask_to_wait(guest, "r1")
    keeper.refresh()

    def publishes() -> None:
        if clock.now > 0.5:
            table.set(MAIN, table.add(table.refs[MAIN], "append", {}))

    clock.then = publishes
    assert gate(clock, 1.0).let_pass(keeper)
    assert clock.now < 1


def test_patience_ends_with_a_slow_guest_and_for_one_that_was_killed(table: MemoryTable, clock: Clock) -> None:
    guest, keeper = opened(table), opened(table)
    ask_to_wait(guest, "r1")
    keeper.refresh()
    waiting = gate(clock, 0.5)
    assert not waiting.let_pass(keeper)
    assert 2 <= clock.now < 2.5
    clock.now = 30.0  # the sign has not moved since
    assert not waiting.let_pass(keeper)
    assert clock.now == 30
    # It moves along with the table as long as its guest lives.
    table.set(MAIN, table.add(table.refs[MAIN], "append", {}))
    guest.refresh()
    ask_to_wait(guest, "r1")
    keeper.refresh()
    clock.then = lambda: stop_asking(guest, "r1")
    assert not waiting.let_pass(keeper)
    assert 30 < clock.now < 31, "it has left without publishing"
