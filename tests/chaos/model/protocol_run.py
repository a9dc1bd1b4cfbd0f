"""Run one schedule of the model with the real code's failpoints and clock under its control."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from protocol_model import Weather, World

from lodestream.flows import flow
from lodestream.flows.letters import table as dead
from lodestream.tables import publish


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
