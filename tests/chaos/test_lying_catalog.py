"""A driver under load on a catalog that lies about its commits, killed in between: nothing lost, nothing doubled."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from protocol_oracle import BRONZE, GOLD, Project, Steady, check_all, published, say, wait_until

sys.path.insert(0, str(Path(__file__).parents[1]))

from lying_catalog import LyingCatalog

SEED = random.SystemRandom().randrange(1_000_000)
LIES = 8


@pytest.mark.timeout(600)
def test_a_lying_catalog_loses_and_doubles_nothing(make_project: Callable[..., Project]) -> None:
    say(f"lies by seed {SEED}")
    project = make_project()
    producer = Steady(project.bootstrap, project.topic, rate=300)
    producer.start()
    driver = project.start()
    wait_until("a batch in Gold", lambda: published(project, GOLD)() >= 1, otherwise=driver.said)

    lying = LyingCatalog(project.config.state_dir / "catalog.db")
    lying.lie("yes", one_of=5, seed=SEED)
    lying.lie("no", one_of=7, seed=SEED + 1)
    told = lambda: min(lying.told("yes"), lying.told("no"))  # noqa: E731
    wait_until("lies of both kinds", lambda: told() >= LIES, otherwise=driver.said)
    driver.kill()
    before = published(project, BRONZE)()
    driver = project.start()
    wait_until("a batch of the next driver", lambda: published(project, BRONZE)() > before, otherwise=driver.said)
    wait_until("as many lies again", lambda: told() >= 2 * LIES, otherwise=driver.said)
    lying.end()

    driver.kill()
    producer.finish()
    last = project.start("--once")
    assert last.ends(180) == 0, last.said()
    assert not project.events("flow.stopped"), project.events("flow.stopped")[0]
    assert check_all(project) == producer.sent
