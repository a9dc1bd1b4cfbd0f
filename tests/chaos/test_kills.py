"""SIGKILL at any instant: nothing lost, nothing doubled, no operator needed (LODE_KILLS=20 for the long form)."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

import pytest
from protocol_oracle import BRONZE, GOLD, SILVER, Project, Steady, check_all, published, say, wait_until

KILLS = int(os.environ.get("LODE_KILLS", "5"))
SEED = int(os.environ.get("LODE_SEED", str(random.SystemRandom().randrange(1_000_000))))
POINTS = (
    "plan.after",
    "stage.before",
    "stage.after",
    "publish.before",
    "publish.swap",
    "publish.swapped",
    "publish.after",
)


def death(rng: random.Random) -> str:
    """A failpoint to die at, or none: then the kill comes from outside, at any instant."""
    if rng.random() < 0.4:
        return ""
    table = rng.choice((BRONZE, SILVER, GOLD))
    points = (*POINTS, "companions.after", "dead.staged", "judge.after") if table == SILVER else POINTS
    return f"{rng.choice(points)}@{table}#{rng.randint(1, 4)}=kill"


@pytest.mark.timeout(120 + 40 * KILLS)
def test_random_kills_lose_and_double_nothing(make_project: Callable[..., Project]) -> None:
    say(f"replay: LODE_SEED={SEED} LODE_KILLS={KILLS}")
    rng = random.Random(SEED)
    project = make_project()
    producer = Steady(project.bootstrap, project.topic)
    producer.start()
    for _ in range(KILLS):
        point = death(rng)
        say(f"dying at {point or 'any instant'}")
        before = published(project, BRONZE)()
        driver = project.start(failpoints=point)
        if point:
            assert driver.ends() == -9, driver.said()
        else:
            wait_until("a batch of this run", lambda before=before: published(project, BRONZE)() > before)
            time.sleep(rng.uniform(0, 3))
            driver.kill()
    producer.finish()
    last = project.start("--once")
    assert last.ends(90) == 0, last.said()
    assert check_all(project) == producer.sent
