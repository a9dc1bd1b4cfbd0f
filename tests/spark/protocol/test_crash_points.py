"""A crash, a failure or a lost answer at every point of every hop: a new run goes on, rows exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from protocol_line import BRONZE, DEAD, GOLD, SILVER, Killed, Line, killed

from lodestream import failpoints
from lodestream.errors import AnotherWriter, CatalogUnavailable, OutcomeUnknown, Transient

POINTS = (
    "plan.after",
    "stage.before",
    "stage.after",
    "publish.before",
    "publish.swap",
    "publish.swapped",
    "publish.after",
)
OF_LETTERS = [("dead.staged", SILVER), ("publish.swap", DEAD), ("publish.swapped", DEAD), ("companions.after", SILVER)]


@pytest.fixture
def line(lake: Any) -> Iterator[Line]:
    yield Line(lake.config, lake.spark)
    failpoints.disarm()


def unavailable() -> None:
    raise CatalogUnavailable("injected")


def answer_lost() -> None:
    raise OutcomeUnknown("injected")


def every_point(table: str) -> list[tuple[str, str]]:
    points = [(point, table) for point in POINTS]
    return points + ([("judge.after", SILVER), *OF_LETTERS] if table == SILVER else [])


def kept_in_memory(line: Line) -> set[int]:
    return set(line.spark.sparkContext._jsc.getPersistentRDDs())


@pytest.mark.parametrize("table", [BRONZE, SILVER, GOLD])
def test_kill_at_every_point_then_a_new_run(line: Line, table: str) -> None:
    before = kept_in_memory(line)  # other tests of the same Spark keep rows of their own
    for point, where in every_point(table):
        line.end += 30
        failpoints.arm(point, where, killed)
        with pytest.raises(Killed):
            line.drive(line.flows())
        failpoints.disarm()
        line.drive(line.flows())
    line.check()
    line.check_chain()
    assert kept_in_memory(line) <= before, "a failed batch keeps its memory"


@pytest.mark.parametrize("action", [unavailable, answer_lost])
def test_the_same_run_goes_on_after_a_failure_at_any_point(line: Line, action: Callable[[], None]) -> None:
    flows = line.flows()
    for table in (BRONZE, SILVER, GOLD):
        for point, where in every_point(table):
            if action is answer_lost and not point.startswith("publish.sw"):
                continue  # only a publication has an answer that matters
            line.end += 20
            failpoints.arm(point, where, action)
            for _ in range(3):
                try:
                    line.drive(flows)
                    break
                except Transient:
                    continue
            failpoints.disarm()
    line.drive(flows)
    line.check()
    line.check_chain()


def test_zombie_that_publishes_its_dead_letters_late(line: Line) -> None:
    line.end = 50
    zombie, heir = line.flows(), line.flows()
    zombie[BRONZE].step(100)
    # The zombie sleeps with its letters staged while another run does the batch, and half of the next.
    failpoints.arm("dead.staged", SILVER, lambda: _meanwhile(line, heir))
    with pytest.raises(AnotherWriter):
        zombie[SILVER].step(100)
    line.drive(heir)
    line.check()


def test_zombie_whose_letters_land_between_those_of_its_heir_and_the_batch(line: Line) -> None:
    line.end = 50
    zombie, heir = line.flows(), line.flows()
    zombie[BRONZE].step(100)

    def zombie_wakes() -> None:
        failpoints.disarm()
        failpoints.arm("companions.after", SILVER, killed)
        with pytest.raises(Killed):
            zombie[SILVER].step(100)
        failpoints.disarm()

    failpoints.arm("companions.after", SILVER, zombie_wakes)
    heir[SILVER].step(100)
    line.end = 80
    line.drive(heir)
    line.check()


def _meanwhile(line: Line, heir: dict[str, Any]) -> None:
    failpoints.disarm()
    line.drive({SILVER: heir[SILVER]})
    line.end += 20
