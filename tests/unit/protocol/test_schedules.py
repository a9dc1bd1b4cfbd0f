"""The one rule under thousands of interleavings of the real publish code (LODE_SCHEDULES=100000 for a long run)."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from protocol_model import Weather, World

from lodestream.flows import dead, flow
from lodestream.tables import publish

SCHEDULES = int(os.environ.get("LODE_SCHEDULES", "2000"))
FIRST = int(os.environ.get("LODE_SEED", "1"))


class _Clock:
    """Time that passes only while somebody waits."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += max(seconds, 0.1)
        self._world.schedule.pause()


@contextmanager
def in_world(world: World) -> Iterator[World]:
    """The failpoints of the real code become places where the schedule may strike."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publish, "time", _Clock(world))
        for module in (publish, flow, dead):
            patch.setattr(module, "reach", lambda point, table: world.gate(point))
        yield world


def run(seed: int, weather: Weather | None = None) -> World:
    with in_world(World(seed, weather)) as world:
        try:
            return world.run()
        except BaseException as failure:
            failure.add_note(f"replay: LODE_SEED={seed} LODE_SCHEDULES=1, weather {world.weather}")
            raise


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


@pytest.mark.parametrize("kind", ["down", "lost", "late", "kill"])
def test_a_single_writer_survives_any_number_of_faults(kind: str) -> None:
    for seed in range(FIRST, FIRST + 60):
        world = run(seed, Weather(faults=25, chance=0.3, kinds=(kind,), writers=1))
        assert world.losers == [], f"seed {seed}: a lone writer took itself for another"
