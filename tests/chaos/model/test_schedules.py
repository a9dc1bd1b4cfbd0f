"""The one rule under thousands of interleavings of the real publish code (LODE_SCHEDULES=100000 for a long run)."""

from __future__ import annotations

import os
import random

import pytest
from protocol_model import LIES, TROUBLES, Weather
from protocol_run import run

SCHEDULES = int(os.environ.get("LODE_SCHEDULES", "1000"))
FIRST = int(os.environ.get("LODE_SEED", "1"))


def test_every_schedule_keeps_the_one_rule() -> None:
    lost = 0
    for seed in range(FIRST, FIRST + SCHEDULES):
        lost += len(run(seed).losers)
    assert lost > SCHEDULES / 20 or SCHEDULES < 100, "hardly any race took place: the schedules are too tame"


def test_of_two_writers_exactly_one_goes_on() -> None:
    for seed in range(FIRST, FIRST + 100):
        world = run(seed, Weather(maintenance=random.Random(seed).choice((0, 3))))
        assert len(world.losers) <= 2, f"seed {seed}: {world.losers}"
        assert world.survivors, f"seed {seed}"


@pytest.mark.parametrize("kind", [*TROUBLES, *LIES])
def test_a_single_writer_survives_any_number_of_faults(kind: str) -> None:
    for seed in range(FIRST, FIRST + 60):
        world = run(seed, Weather(faults=25, chance=0.3, kinds=(kind,), writers=1))
        assert world.losers == [], f"seed {seed}: a lone writer took itself for another"


def test_two_drivers_that_pull_the_same_stream_double_and_lose_nothing() -> None:
    for seed in range(FIRST, FIRST + 150):
        run(seed, Weather(maintenance=random.Random(seed).choice((0, 3)), streams=True))
