"""Two drivers on one pipeline: one goes on, the other stops, and a stopped process that wakes up doubles nothing."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from protocol_oracle import BRONZE, Project, Steady, check_all, events_in_gold, published, wait_until

ANOTHER_WRITER = 5
# The lease would keep the second driver away; here the one rule must do without it.
NO_LEASE = {"LODE_LEASE": "off"}


@pytest.mark.timeout(600)
def test_second_driver_and_zombie(make_project: Callable[..., Project]) -> None:
    project = make_project()
    producer = Steady(project.bootstrap, project.topic, rate=500)
    producer.start()
    first = project.start(environment=NO_LEASE)
    wait_until("the first driver's batch", lambda: published(project, BRONZE)() >= 1)
    second = project.start(environment=NO_LEASE)
    wait_until("one of the two stops", lambda: first.process.poll() is not None or second.process.poll() is not None)
    loser, winner = (first, second) if first.process.poll() is not None else (second, first)
    assert loser.ends() == ANOTHER_WRITER, loser.said()
    assert "AnotherWriter" in loser.said()
    assert winner.process.poll() is None, winner.said()

    winner.signal(signal.SIGSTOP)
    before = published(project, BRONZE)()
    third = project.start(environment=NO_LEASE)
    wait_until("the third driver's batch", lambda: published(project, BRONZE)() > before + 1)
    winner.signal(signal.SIGCONT)
    wait_until("the zombie or its heir stops", lambda: winner.process.poll() is not None)
    assert winner.ends() == ANOTHER_WRITER, winner.said()

    producer.finish()
    good = sum(1 for number in range(producer.sent) if number % 40)
    wait_until("all of it in Gold", lambda: events_in_gold(project) == good)
    third.signal(signal.SIGTERM)
    assert third.ends() == 0, third.said()
    assert check_all(project) == producer.sent
