"""The lease: who runs is found out before anything is written, and the dead do not keep the living waiting."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from lodestream.errors import AlreadyRuns
from lodestream.runtime.process import ProcessId
from lodestream.tables.lease import LIMIT_SECONDS, RENEW_SECONDS, Conflict, Holder, Lease, LeaseBook

FAR = ProcessId("far", "far/boot/ns", 77, 1.0)


class Shared:
    """The pages that several books show, and a clock that only moves when somebody sleeps."""

    def __init__(self) -> None:
        self.pages: dict[str, Holder] = {}
        self.version = 0
        self.now = 1_000_000.0
        self.meanwhile: list[Lease] = []
        self.gives_way = True

    def sleep(self, seconds: float) -> None:
        before, self.now = self.now, self.now + seconds
        if before // RENEW_SECONDS != self.now // RENEW_SECONDS:
            for lease in self.meanwhile:
                asked = lease.renew().asked
                if self.gives_way:
                    lease.release(asked)

    def lease(self, run: str, process: ProcessId | None = None, *, skew: float = 0.0) -> Lease:
        return Lease(
            Book(self), run, process=process, clock=lambda: self.now + skew, monotonic=lambda: self.now,
            sleep=self.sleep,
        )  # fmt: skip


class Book(LeaseBook):
    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._base = -1

    def read(self) -> dict[str, Holder]:
        self._base = self._shared.version
        return dict(self._shared.pages)

    def write(self, changes: Mapping[str, Holder | None]) -> None:
        if self._base != self._shared.version:
            raise Conflict("changed meanwhile")
        for name, holder in changes.items():
            if holder is None:
                self._shared.pages.pop(name, None)
            else:
                self._shared.pages[name] = Holder.from_json(holder.to_json()) or pytest.fail("it cannot be read again")
        self._shared.version = self._base = self._shared.version + 1


@pytest.fixture
def shared() -> Shared:
    return Shared()


def dead_process() -> ProcessId:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    own = ProcessId.own()
    return ProcessId(own.host, own.machine, process.pid, own.began)


def test_a_newcomer_learns_at_once_who_runs_on_this_machine(shared: Shared) -> None:
    shared.lease("first").take(["silver.a", "gold.b"])
    began = shared.now
    with pytest.raises(AlreadyRuns, match=r"gold\.b is kept by another driver") as refused:
        shared.lease("second").take(["gold.b"])
    assert shared.now - began < 1
    assert "run first" in str(refused.value.why)
    assert f"process {os.getpid()}" in str(refused.value.why)
    assert refused.value.exit_code == 5
    assert refused.value.holder["run"] == "first"
    assert shared.pages["gold.b"].run == "first"


def test_two_drivers_share_a_pipeline_by_its_tables(shared: Shared) -> None:
    first, second = shared.lease("first"), shared.lease("second")
    first.take(["bronze.a"])
    second.take(["silver.a"])
    assert not first.renew().lost
    assert not second.renew().lost
    assert {name: one.run for name, one in shared.pages.items()} == {"bronze.a": "first", "silver.a": "second"}


def test_a_killed_run_of_this_machine_keeps_nobody_waiting(shared: Shared) -> None:
    shared.lease("killed", dead_process()).take(["silver.a"])
    began = shared.now
    shared.lease("next").take(["silver.a"])
    assert shared.now == began
    assert shared.pages["silver.a"].run == "next"


def test_a_process_that_was_given_the_number_of_a_dead_one_is_not_the_holder(shared: Shared) -> None:
    own = ProcessId.own()
    shared.lease("killed", ProcessId(own.host, own.machine, own.pid, own.began - 500)).take(["silver.a"])
    shared.lease("next").take(["silver.a"])
    assert shared.pages["silver.a"].run == "next"


def test_a_run_elsewhere_that_renews_is_seen_to_live(shared: Shared) -> None:
    far = shared.lease("far", FAR)
    far.take(["silver.a"])
    shared.meanwhile.append(far)
    began = shared.now
    with pytest.raises(AlreadyRuns, match=r"silver\.a"):
        shared.lease("second").take(["silver.a"])
    assert shared.now - began <= RENEW_SECONDS + 1


@pytest.mark.parametrize("skew", [0.0, 600.0, -600.0])
def test_a_run_elsewhere_that_was_killed_frees_its_tables_within_the_limit(shared: Shared, skew: float) -> None:
    shared.lease("far", FAR, skew=skew).take(["silver.a"])
    began = shared.now
    shared.lease("next").take(["silver.a"])
    assert shared.now - began <= LIMIT_SECONDS + 1
    assert shared.pages["silver.a"].run == "next"


@pytest.mark.parametrize("skew", [600.0, -600.0])
def test_a_wrong_clock_ends_no_run_that_lives(shared: Shared, skew: float) -> None:
    far = shared.lease("far", FAR, skew=skew)
    far.take(["silver.a"])
    shared.meanwhile.append(far)
    with pytest.raises(AlreadyRuns):
        shared.lease("second").take(["silver.a"])


def test_who_is_told_to_takes_over_when_the_other_has_ended_its_batch(shared: Shared) -> None:
    """Both at work would race, and the one that takes over might be the one that loses."""
    first, second = shared.lease("first"), shared.lease("second")
    first.take(["silver.a", "gold.b"])
    shared.meanwhile.append(first)
    began = shared.now
    second.take(["gold.b"], over=True)
    assert 0 < shared.now - began <= RENEW_SECONDS + 1, "it waited until the first had let go"
    assert first.held == {"silver.a"}
    renewed = first.renew()
    assert (renewed.asked, renewed.lost) == ({}, {})
    assert {name: one.run for name, one in shared.pages.items()} == {"silver.a": "first", "gold.b": "second"}


def test_a_run_that_hangs_is_taken_over_and_learns_it_when_it_wakes(shared: Shared) -> None:
    first, second = shared.lease("first"), shared.lease("second")
    first.take(["silver.a", "gold.b"])
    second.take(["gold.b"], over=True)
    lost = first.renew().lost
    assert {name: one.run for name, one in lost.items()} == {"gold.b": "second"}
    assert first.held == {"silver.a"}
    first.release()
    assert {name: one.run for name, one in shared.pages.items()} == {"gold.b": "second"}


def test_nobody_gives_way_to_an_heir_that_has_died(shared: Shared) -> None:
    first, second = shared.lease("first"), shared.lease("second", dead_process())
    first.take(["silver.a"])
    shared.gives_way = False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(second, "_sleep", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            second.take(["silver.a"], over=True)
    assert first.renew().asked == {}


def test_nobody_gives_way_to_an_heir_elsewhere_that_was_killed_and_its_question_is_removed(shared: Shared) -> None:
    """Of a process on another machine nobody here can say whether it lives: only its next question shows it."""
    first, second = shared.lease("first"), shared.lease("second", FAR)
    first.take(["silver.a"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(second, "_sleep", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            second.take(["silver.a"], over=True)
    assert len(shared.pages) == 2
    for _ in range(int(LIMIT_SECONDS / RENEW_SECONDS) + 2):
        assert first.renew().asked == {}
        shared.now += RENEW_SECONDS
    assert set(shared.pages) == {"silver.a"}
    assert shared.pages["silver.a"].run == "first"


def test_a_living_heir_elsewhere_is_given_way_to_within_two_renewals(shared: Shared) -> None:
    first, second = shared.lease("first"), shared.lease("second", FAR)
    first.take(["silver.a", "gold.b"])
    shared.meanwhile.append(first)
    began = shared.now
    second.take(["gold.b"], over=True)
    assert shared.now - began <= 2 * RENEW_SECONDS + 1, "it was not taken by force"
    assert first.held == {"silver.a"}
    assert {name: one.run for name, one in shared.pages.items()} == {"silver.a": "first", "gold.b": "second"}


def test_an_heir_that_follows_a_killed_one_is_heard(shared: Shared) -> None:
    first, killed, heir = shared.lease("first"), shared.lease("killed", FAR), shared.lease("heir", FAR)
    first.take(["silver.a"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(killed, "_sleep", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            killed.take(["silver.a"], over=True)
    assert first.renew().asked == {}
    shared.meanwhile.append(first)
    began = shared.now
    heir.take(["silver.a"], over=True)
    assert shared.now - began <= 3 * RENEW_SECONDS
    assert (first.held, shared.pages["silver.a"].run) == (frozenset(), "heir")


def test_a_released_table_is_free(shared: Shared) -> None:
    first = shared.lease("first")
    first.take(["silver.a"])
    first.release()
    assert shared.pages == {}
    shared.lease("second").take(["silver.a"])


def test_of_two_that_come_at_once_one_holds_the_table(shared: Shared) -> None:
    """The second has read before the first wrote, and writes after it."""
    first, second = shared.lease("first"), shared.lease("second")
    book = second._book
    reads = book.read

    def late() -> dict[str, Holder]:
        pages = reads()
        if not first.held:
            first.take(["silver.a"])
        return pages

    book.read = late  # type: ignore[method-assign]
    with pytest.raises(AlreadyRuns):
        second.take(["silver.a"])
    assert shared.pages["silver.a"].run == "first"
