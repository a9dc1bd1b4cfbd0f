"""Whatever a producer sends lands in Bronze, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Callable

from confluent_kafka import Producer
from protocol_oracle import BRONZE, Project, check_bronze, consume

from lodestream.engine import run_pipeline
from lodestream.planning.project import open_project

TEN_MB = 10 * 1024 * 1024


def bring_in(project: Project) -> None:
    end = run_pipeline(open_project(project.config), once=True, only=[BRONZE])
    assert end.exit_code == 0, end


def test_nulls_empty_messages_headers_and_any_bytes(make_project: Callable[..., Project]) -> None:
    project = make_project()
    producer = Producer({"bootstrap.servers": project.bootstrap})
    awkward: list[bytes | None] = [None, b"", b"\x00", b"\xff\xfe\xed", "\u2603 \U0001f600".encode(), bytes(range(256))]
    for key in awkward:
        for value in awkward:
            producer.produce(project.topic, value, key=key, headers=[("h", key), ("h", value), ("", b"x")])
    producer.produce(project.topic, b"no headers")
    assert producer.flush(20) == 0
    bring_in(project)
    messages = consume(project.bootstrap, project.topic)
    check_bronze(project, messages)
    wanted = {one.place: list(one.headers) for one in messages}
    held = {
        (row["topic"], row["partition"], row["offset"]): [(one["key"], one["value"]) for one in row["headers"] or []]
        for row in project.rows(BRONZE)
    }
    assert held == wanted


def test_ten_megabyte_messages(make_project: Callable[..., Project]) -> None:
    project = make_project(partitions=1, **{"max.message.bytes": str(TEN_MB + 4096)})
    producer = Producer({"bootstrap.servers": project.bootstrap, "message.max.bytes": TEN_MB + 4096})
    for _ in range(3):
        producer.produce(project.topic, os.urandom(TEN_MB))
        producer.produce(project.topic, b"small")
        assert producer.flush(60) == 0
    bring_in(project)
    messages = consume(project.bootstrap, project.topic)
    assert len(messages) == 6
    check_bronze(project, messages)


def test_a_thousand_partitions(make_project: Callable[..., Project]) -> None:
    project = make_project(partitions=1000)
    producer = Producer({"bootstrap.servers": project.bootstrap})
    for number in range(2500):
        producer.produce(project.topic, b"%d" % number, partition=number % 1000)
    assert producer.flush(60) == 0
    bring_in(project)
    for number in range(5):
        producer.produce(project.topic, b"later %d" % number, partition=number * 200)
    assert producer.flush(60) == 0
    bring_in(project)
    messages = consume(project.bootstrap, project.topic)
    assert len(messages) == 2505
    check_bronze(project, messages)
