"""A source that changes under a live driver: stopped within one batch, by name, and gone on with when accepted."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial

import pytest
from confluent_kafka import TopicPartition
from protocol_oracle import (
    BRONZE,
    GOLD,
    SILVER,
    Driver,
    Project,
    admin,
    create_topic,
    delete_topic,
    events_in_gold,
    send,
    wait_until,
)
from pyiceberg.catalog import load_catalog

from lodestream.engine import read_status
from lodestream.planning.project import open_project

SOURCE_CHANGED = 6


def good(*numbers: range) -> int:
    """How many of these events are not cut off."""
    return sum(1 for span in numbers for number in span if number % 40)


class Watched:
    """One driver after another on one project, each stopped by what happens to its source."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def keeping_up(self, total: int, *arguments: str) -> Driver:
        """A driver that has nothing left to do: so many events are in Gold."""
        driver = self.project.start(*arguments)
        wait_until("all of it in Gold", lambda: events_in_gold(self.project) == total, otherwise=driver.said)
        return driver

    def stops(self, driver: Driver, change: Callable[[], None], error: str) -> None:
        """The change happens between two looks of the driver, which then stops and publishes nothing."""
        driver.signal(signal.SIGSTOP)
        heads = self.heads()
        change()
        driver.signal(signal.SIGCONT)
        assert driver.ends() == SOURCE_CHANGED, driver.said()
        assert self.heads() == heads
        stopped = self.project.events("flow.stopped", BRONZE)[-1]
        assert stopped.facts()["error"] == error
        assert "--accept-gap" in str(stopped.facts()["fix"])

    def heads(self) -> list[int | None]:
        return [self.project.head(table) for table in (BRONZE, SILVER, GOLD)]


@pytest.mark.timeout(600)
def test_gap_new_topic_and_dropped_table_stop_a_live_driver(make_project: Callable[..., Project]) -> None:
    project = make_project(partitions=1)
    watched, bootstrap, topic = Watched(project), project.bootstrap, project.topic
    send(bootstrap, topic, range(500))

    def deleted_ahead() -> None:
        send(bootstrap, topic, range(500, 1000))
        for future in admin(bootstrap).delete_records([TopicPartition(topic, 0, 700)]).values():
            future.result(20)

    def recreated() -> None:
        """Past the old offset: by numbers alone it would look like more of the same."""
        delete_topic(bootstrap, topic)
        create_topic(bootstrap, topic, 1)
        send(bootstrap, topic, range(2000))

    total = good(range(500))
    watched.stops(watched.keeping_up(total), deleted_ahead, "SourceGap")
    total += good(range(700, 1000))
    watched.stops(watched.keeping_up(total, "--accept-gap", BRONZE), recreated, "SourceRecreated")
    total += good(range(2000))
    driver = watched.keeping_up(total, "--accept-gap", BRONZE)
    decisions = [stamp.notes for stamp in project.stamps(BRONZE) if "accepted-gap" in stamp.notes]
    assert len(decisions) == 2
    assert len(project.rows(BRONZE)) == 500 + 300 + 2000

    _drop(project, SILVER)
    send(bootstrap, topic, range(2000, 2010))
    for table in (SILVER, GOLD):  # whichever finds it first
        wait_until(f"{table} has stopped", partial(project.events, "flow.stopped", table), otherwise=driver.said)
    shown = {table.name: table for table in read_status(open_project(project.config)).tables}
    assert shown[SILVER].state == shown[GOLD].state == "stopped"
    assert f"{SILVER} is gone" in str(shown[SILVER].error)
    assert f"{SILVER} is gone" in str(shown[GOLD].error)
    assert shown[BRONZE].state in ("waiting", "running")  # what does not depend on it goes on
    driver.signal(signal.SIGTERM)
    assert driver.ends() == SOURCE_CHANGED, driver.said()


def _drop(project: Project, table: str) -> None:
    config = project.config
    catalog = load_catalog(config.catalog.name, type="sql", uri=config.catalog_uri(), warehouse=config.warehouse())
    catalog.drop_table(table)
