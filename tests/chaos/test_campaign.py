"""A campaign of faults against one pipeline under load: nothing lost, nothing doubled, no operator needed.

A driver lives, something breaks, it dies by SIGKILL, the next one goes on; maintenance and a reader run beside it all.
LODE_KILLS=20 LODE_OUTAGE=60 for the long form; LODE_SEED replays one.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from clock import can_shift, shifted
from faults import OUTAGE, BrokerKilled, CatalogLocked, DiskFull, Fault, endure
from protocol_oracle import (
    BRONZE,
    GOLD,
    SILVER,
    Driver,
    Project,
    Steady,
    check_all,
    create_topic,
    published,
    say,
    wait_until,
)
from pyspark.sql import SparkSession
from upkeep import Onlooker, Upkeep

from lodestream.config import Config
from lodestream.runtime.broker import start_broker, stop_broker
from lodestream.runtime.session import start_session

KILLS = int(os.environ.get("LODE_KILLS", "5"))
RATE = int(os.environ.get("LODE_RATE", "1000"))
SEED = int(os.environ.get("LODE_SEED", str(random.SystemRandom().randrange(1_000_000))))
TOPIC = "campaign.events"
POINTS = (
    "plan.after",
    "stage.before",
    "stage.after",
    "publish.before",
    "publish.swap",
    "publish.swapped",
    "publish.after",
)
OF_SILVER = ("companions.after", "dead.staged", "judge.after")


@dataclass
class Campaign:
    project: Project
    faults: list[Fault]
    rng: random.Random
    recoveries: list[float] = field(default_factory=list)

    def live(self, fault: Fault | None) -> None:
        """One driver, from its start to its death: at a point of the protocol, or at any instant around a fault."""
        point = "" if fault else self._point()
        lost = f"publish.swapped@{self.rng.choice((BRONZE, SILVER, GOLD))}#2=lose"
        say(f"life: {type(fault).__name__ if fault else point}")
        driver = self.start(failpoints=point or lost)
        if fault is None:
            assert driver.ends(180) == -9, driver.said()
            return
        endure(driver, fault)
        if self.rng.random() < 0.5:  # it dies while the fault lasts
            driver.kill()
            fault.heal()
        else:
            fault.heal()
            self._recovered(driver)
            time.sleep(self.rng.uniform(0, 2))
            driver.kill()

    def start(self, *arguments: str, failpoints: str = "", environment: dict[str, str] | None = None) -> Driver:
        """A driver that has published a batch, unless a failpoint ended it before; how long that took is noted."""
        batches = published(self.project, BRONZE)
        before, began = batches(), time.monotonic()
        driver = self.project.start(*arguments, failpoints=failpoints, environment=environment)
        wait_until(
            "the first batch of a driver",
            lambda: batches() > before or driver.process.poll() is not None,
            otherwise=driver.said,
        )
        self.recoveries.append(time.monotonic() - began)
        return driver

    def wrong_clock(self, folder: Path) -> None:
        """Ten minutes back: Iceberg refuses such commits. The driver says so, publishes nothing and waits."""
        say("life: the clock is ten minutes back")
        before = self._last_batches()
        driver = self.project.start(environment=shifted(folder, -600))
        wait_until("a retry that names the clock", lambda: driver.retries("ClockBehind"), otherwise=driver.said)
        driver.kill()
        assert self._last_batches() == before

    def last(self, folder: Path) -> None:
        """Only the tables are left, and a clock that is a little behind: everything is brought up to date."""
        only_the_tables_are_left(self.project)
        driver = self.project.start("--once", environment=shifted(folder, -45) if can_shift() else None)
        # What was sent while drivers died has to be caught up with.
        assert driver.ends(120 + 40 * KILLS) == 0, driver.said()

    def _recovered(self, driver: Driver) -> None:
        batches = published(self.project, GOLD)
        before = batches()
        wait_until("Gold after the fault", lambda: batches() > before, otherwise=driver.said)

    def _last_batches(self) -> dict[str, int]:
        return {table: self.project.stamped(table)[-1].id for table in (BRONZE, SILVER, GOLD)}

    def _point(self) -> str:
        table = self.rng.choice((BRONZE, SILVER, GOLD))
        points = (*POINTS, *OF_SILVER) if table == SILVER else POINTS
        return f"{self.rng.choice(points)}@{table}#{self.rng.randint(1, 4)}=kill"


def only_the_tables_are_left(project: Project) -> None:
    """A table is its own checkpoint: everything but the warehouse and the catalog may go."""
    state = project.config.state_dir
    for entry in state.iterdir():
        if entry.name.startswith("catalog.db") or entry.name == "warehouse":
            continue
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def schedule(faults: list[Fault], kills: int, rng: random.Random) -> list[Fault | None]:
    """Each fault at least once, and about as many deaths at a point of the protocol."""
    lives: list[Fault | None] = [
        *faults,
        *[rng.choice([None, None, None, *faults]) for _ in range(kills - len(faults))],
    ]
    rng.shuffle(lives)
    return lives


@pytest.fixture
def campaign(tmp_path: Path, spark: SparkSession) -> Iterator[Campaign]:
    """A project with a broker that may be killed and a disk that may be filled."""
    config = Config(root=tmp_path / "broker")
    broker = start_broker(config)
    create_topic(broker.bootstrap, TOPIC)
    project = Project(tmp_path / "project", broker.bootstrap, TOPIC, busy_millis=200)
    disk = DiskFull(project.config.state_dir) if DiskFull.can_mount() else None
    faults = [BrokerKilled(config), CatalogLocked(project), *([disk] if disk else [])]
    yield Campaign(project, faults, random.Random(SEED))
    project.stop_all()
    stop_broker(config)
    if disk:
        disk.unmount()


@pytest.mark.timeout(480 + (120 + OUTAGE) * KILLS)
def test_campaign_loses_and_doubles_nothing(campaign: Campaign, spark: SparkSession, tmp_path: Path) -> None:
    say(f"replay: LODE_SEED={SEED} LODE_KILLS={KILLS} LODE_OUTAGE={OUTAGE:g}")
    project = campaign.project
    producer = Steady(project.bootstrap, TOPIC, RATE)
    upkeep = Upkeep(start_session(project.config, app_name="upkeep"), project)
    onlooker = Onlooker(project)
    for beside in (producer, upkeep, onlooker):
        beside.start()
    for fault in schedule(campaign.faults, KILLS, campaign.rng):
        campaign.live(fault)
    if can_shift():
        campaign.wrong_clock(tmp_path)
    sent = producer.finish()
    stops = project.events("flow.stopped")
    campaign.last(tmp_path)
    upkeep.finish()
    onlooker.finish()
    say(f"{sent:,} events, {KILLS} kills; start to first batch {max(campaign.recoveries):.1f} s at most")
    say(f"maintenance: {dict(upkeep.done)}, in vain: {dict(upkeep.failed)}; the reader looked {onlooker.looks} times")
    assert not stops, stops[0]
    assert check_all(project) == sent
    assert upkeep.done["compact"], upkeep.failed
    assert upkeep.done["expire"], upkeep.failed
