"""Sending: to a Kafka protocol server inside librdkafka, on schedule, and from the command line."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from generator import ALL_DIRT, DeliveryFailed, events, fixed_rate, open_sender, real_time, stream
from generator.__main__ import main
from generator.month import MONTH_SECONDS


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A broker that lives in the client library: the real protocol over loopback, no JVM."""
    host = Producer({"test.mock.num.brokers": 1, "log_level": 2})
    metadata = host.list_topics(timeout=10)
    (broker,) = metadata.brokers.values()
    yield f"{broker.host}:{broker.port}"
    host.flush(1)


def consume(bootstrap: str, topic: str, count: int) -> list[tuple[bytes | None, bytes]]:
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "log_level": 2}
    consumer = Consumer(settings)
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
    messages, deadline = [], time.monotonic() + 20
    while len(messages) < count and time.monotonic() < deadline:
        messages += consumer.consume(1_000, timeout=0.2)
    messages += consumer.consume(10, timeout=0.2)
    consumer.close()
    assert all(message.error() is None for message in messages)
    by_position = sorted(messages, key=lambda message: (message.partition(), message.offset()))
    return [(message.key(), message.value()) for message in by_position]


def test_every_event_arrives_once_with_its_key(cluster):
    wanted = [
        pair
        for batch in events(3_000, 4, ALL_DIRT)
        for pair in zip(batch.keys.to_pylist(), batch.values.to_pylist(), strict=True)
    ]
    sent = stream(events(3_000, 4, ALL_DIRT, chunk=700), open_sender(cluster, "keyed"))
    assert sent == 3_000
    # Values are empty at times: a consumer sees b"" and not a tombstone.
    assert sorted(consume(cluster, "keyed", 3_000)) == sorted(wanted)


def test_a_full_queue_waits_and_loses_nothing(cluster):
    sender = open_sender(cluster, "narrow", {"queue.buffering.max.messages": 100, "linger.ms": 0})
    assert stream(events(2_000, 1), sender) == 2_000
    assert len(consume(cluster, "narrow", 2_000)) == 2_000


def test_events_the_broker_did_not_take_are_an_error():
    sender = open_sender("127.0.0.1:1", "nowhere", {"message.timeout.ms": 200, "enable.idempotence": False})
    with pytest.raises(DeliveryFailed, match="3 events for nowhere refused"):
        stream(events(3), sender)


class Clock:
    """Takes events and remembers when."""

    def __init__(self) -> None:
        self.sent = 0
        self.moments: list[float] = []
        self.began = time.monotonic()

    def send(self, batch, start=0, stop=None) -> None:
        count = len(batch.values[start:stop])
        self.moments += [time.monotonic() - self.began] * count
        self.sent += count

    def idle(self) -> None: ...

    def close(self) -> None: ...


def assert_on_time(moments: list[float], due: list[float]) -> None:
    """Never early; late only by what a busy machine may take."""
    for moment, wanted in zip(moments, due, strict=True):
        assert wanted - 0.001 <= moment < wanted + 1.0


def test_a_fixed_rate_is_kept():
    clock = Clock()
    assert stream(events(200, chunk=64), clock, fixed_rate(1_000)) == 200
    assert_on_time(clock.moments, [place / 1_000 for place in range(200)])


def test_real_time_follows_the_month():
    clock, speed = Clock(), MONTH_SECONDS / 0.2
    stream(events(200, chunk=64), clock, real_time(speed))
    (whole,) = events(200)
    assert_on_time(clock.moments, ((whole.due - whole.due[0]) / speed).tolist())


def test_the_command_writes_lines_and_a_true_summary():
    result = CliRunner().invoke(main, ["--events", "500", "--seed", "3", "--malformed", "0.0", "--json"])
    assert result.exit_code == 0
    lines = result.stdout_bytes.splitlines()
    assert len(lines) == 500 == json.loads(result.stderr)["events"]
    assert lines == next(events(500, 3)).values.to_pylist()


def test_the_command_continues_a_stream_where_it_was():
    arguments = ["--seed", "3", "--lap", "900", "--late", "0.1"]
    first, rest, whole = (
        CliRunner().invoke(main, [*arguments, *more]).stdout_bytes
        for more in (["--events", "400"], ["--events", "500", "--start-at", "400"], ["--events", "900"])
    )
    assert first + rest == whole


def test_a_broker_that_does_not_answer_is_named_with_the_fix(monkeypatch):
    monkeypatch.setattr("generator.produce._WAIT_FOR_ANSWER", 0.3)
    result = CliRunner().invoke(main, ["--events", "1", "--bootstrap", "127.0.0.1:1"])
    assert result.exit_code == 1
    assert "127.0.0.1:1" in result.stderr
    assert "fix: " in result.stderr


@pytest.mark.parametrize(
    "arguments", [["--late", "0.5", "--deletes", "0.5"], ["--malformed", "2"], ["--mode", "sometimes"]]
)
def test_wrong_arguments_are_refused(arguments):
    assert CliRunner().invoke(main, ["--events", "1", *arguments]).exit_code == 2
