"""The upkeep of a run: which steps its tables ask for. A new kind of step is one more entry of `_STEPS`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from pyspark.sql import SparkSession

from lodestream.engine.build import Builder
from lodestream.engine.driver import Driver
from lodestream.engine.idle import IdleWork
from lodestream.engine.runner import Runner
from lodestream.engine.scrub import Scrubber
from lodestream.engine.verify import verify_one
from lodestream.flows.parts import Repair
from lodestream.maintenance.schedule import Schedule
from lodestream.maintenance.step import Step
from lodestream.observe import EventLog
from lodestream.planning.project import Project
from lodestream.recovery.verify.compare import Sampling
from lodestream.recovery.verify.result import Verification

_GROUP = "lode-upkeep"


@dataclass(frozen=True)
class Upkept:
    """What a step may need of the run that it goes on in."""

    project: Project
    spark: SparkSession
    builder: Builder
    runners: Sequence[Runner]
    driver: Driver
    events: EventLog

    def schedule(self, intervals: dict[str, float], name: str) -> Schedule:
        return Schedule(intervals, self.project.config.state_dir / f"{name}.json")


class SparkJobs:
    """In a group of their own, so that they can be cancelled without harm to others."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext

    def begin(self, table: str) -> None:
        self._context.setJobGroup(_GROUP, f"upkeep of {table}", interruptOnCancel=True)

    def cancel(self) -> None:
        self._context.cancelJobGroup(_GROUP)


def upkeep(run: Upkept) -> IdleWork | None:
    """Begun and to be closed with the run; None when no table asks for any."""
    steps = [step for made in _STEPS if (step := made(run)) is not None]
    if not steps:
        return None
    begun = IdleWork(steps, run.driver, SparkJobs(run.spark))
    begun.start()
    return begun


def verifying(run: Upkept) -> Step | None:
    """Of the Gold tables that say `verify=`."""
    verified = [one for one in run.runners if one.flow.parts.repair is not None and one.flow.table.verify]
    if not verified:
        return None
    graph = run.project.graph

    def verify(name: str, keys: int | None, proceed: Callable[[], None]) -> Verification:
        sampling = Sampling(keys, random.randrange(2**31)) if keys else None  # noqa: S311 - any sample will do
        return verify_one(run.project, run.builder, graph[name], sampling, proceed)

    schedule = run.schedule({one.name: one.flow.table.verify or 0.0 for one in verified}, "verified")
    return Scrubber(schedule, verify, live_gold(verified), run.driver, run.events)


_STEPS: tuple[Callable[[Upkept], Step | None], ...] = (verifying,)


def live_gold(runners: Sequence[Runner]) -> Callable[[str], Repair]:
    """The Gold table that its runner keeps now, by name."""
    found = {runner.name: runner for runner in runners}
    return lambda name: cast("Repair", found[name].flow.parts.repair)
