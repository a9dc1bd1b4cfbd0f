"""Broker and catalog go away and come back: retried or resolved, never guessed."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from protocol_oracle import (
    BRONZE,
    GOLD,
    SILVER,
    Project,
    check_all,
    create_topic,
    events_in_gold,
    published,
    send,
    wait_until,
)

from lodestream.config import Config
from lodestream.runtime.broker import BrokerInfo, start_broker, stop_broker

TOPIC = "outages.events"


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[tuple[Config, BrokerInfo]]:
    """One that the test may stop, on the same port each time."""
    config = Config(root=tmp_path / "broker")
    yield config, start_broker(config)
    stop_broker(config)


@pytest.mark.timeout(300)
def test_broker_and_catalog_away_for_a_while(own_broker: tuple[Config, BrokerInfo], tmp_path: Path) -> None:
    config, broker = own_broker
    create_topic(broker.bootstrap, TOPIC)
    project = Project(tmp_path / "project", broker.bootstrap, TOPIC, busy_millis=200)
    send(broker.bootstrap, TOPIC, range(0, 1000))
    lost = [f"publish.swapped@{table}#2=lose" for table in (BRONZE, SILVER, GOLD)]
    driver = project.start(failpoints=",".join(lost))
    wait_until("the first batch in Gold", published(project, GOLD))

    send(broker.bootstrap, TOPIC, range(1000, 2000))
    wait_until("Gold although its answer was lost", lambda: published(project, GOLD)() >= 2)

    with sqlite3.connect(project.config.state_dir / "catalog.db", isolation_level=None) as catalog:
        catalog.execute("BEGIN EXCLUSIVE")
        send(broker.bootstrap, TOPIC, range(2000, 3000))
        wait_until("a retry", lambda: project.events("flow.retry"))
        catalog.execute("COMMIT")
    wait_until("all of it in Gold", lambda: events_in_gold(project) == 3000 - 3000 // 40)

    assert stop_broker(config)
    retries = len(project.events("flow.retry", BRONZE))
    wait_until("a retry", lambda: len(project.events("flow.retry", BRONZE)) > retries)
    assert start_broker(config).port == broker.port
    send(broker.bootstrap, TOPIC, range(3000, 4000))
    wait_until("all of it in Gold", lambda: events_in_gold(project) == 4000 - 4000 // 40)

    asked = time.monotonic()
    driver.signal(signal.SIGTERM)
    assert driver.ends(30) == 0, driver.said()
    assert time.monotonic() - asked < 30
    assert not project.events("flow.stopped")
    assert check_all(project) == 4000
    _only_the_tables_are_left(project)
    send(broker.bootstrap, TOPIC, range(4000, 4500))
    again = project.start("--once")
    assert again.ends(90) == 0, again.said()
    assert check_all(project) == 4500


def _only_the_tables_are_left(project: Project) -> None:
    """A table is its own checkpoint: everything but the warehouse and the catalog may go."""
    state = project.config.state_dir
    for entry in state.iterdir():
        if entry.name.startswith("catalog.db") or entry.name == "warehouse":
            continue
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
