"""Batches to a Kafka topic."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from .events import Batch

_WAIT_FOR_BROKER = 30.0
_WAIT_FOR_ANSWER = 10.0
_LOG_NOTHING = 2  # what matters reaches us as errors; the client would print it in the middle of a terminal display
# Idempotence: a retry inside the client must not add duplicates that nobody ordered and nobody counted.
_PRODUCER = {
    "enable.idempotence": True,
    "linger.ms": 10,
    "batch.size": 1_000_000,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": 65_536,
    "delivery.report.only.error": True,
    "log_level": _LOG_NOTHING,
}


class DeliveryFailed(Exception):
    """The broker did not take every event."""


@dataclass(slots=True)
class Sender:
    """Sends batches to one topic and keeps count; `close` waits until the broker has everything."""

    topic: str
    producer: Producer
    sent: int = 0
    troubles: deque[str] = field(default_factory=deque)
    _refused: list[str] = field(default_factory=list)

    def send(self, batch: Batch, start: int = 0, stop: int | None = None) -> None:
        """Hand over the events of one batch from `start` to `stop`, waiting when the client's queue is full."""
        values = batch.values[start:stop].to_pylist()
        keys = batch.keys[start:stop].to_pylist()
        produce, topic, report = self.producer.produce, self.topic, self._note
        for key, value in zip(keys, values, strict=True):
            try:
                produce(topic, value, key, -1, report)
            except BufferError:
                self._wait_for_room(key, value)
        self.sent += len(values)
        self.idle()

    def idle(self) -> None:
        """Nothing to send right now: let the client report failures."""
        self.producer.poll(0)
        self._raise_refused()

    def close(self) -> None:
        """Wait for the broker's word on every event."""
        left = self.producer.flush(_WAIT_FOR_BROKER)
        self._raise_refused()
        if left:
            raise DeliveryFailed(self._late(f"{left:,} events"))

    def _wait_for_room(self, key: bytes | None, value: bytes) -> None:
        deadline = time.monotonic() + _WAIT_FOR_BROKER
        while time.monotonic() < deadline:
            self.producer.poll(0.01)
            try:
                self.producer.produce(self.topic, value, key, -1, self._note)
            except BufferError:
                continue
            return
        raise DeliveryFailed(self._late("the next event"))

    def _late(self, what: str) -> str:
        last = f"; the client last said: {self.troubles[-1]}" if self.troubles else ""
        return f"the broker did not take {what} for {self.topic} within {_WAIT_FOR_BROKER:.0f} s{last}"

    def _note(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._refused.append(str(error))

    def _raise_refused(self) -> None:
        if self._refused:
            raise DeliveryFailed(f"{len(self._refused):,} events for {self.topic} refused: {self._refused[0]}")


def open_sender(bootstrap: str, topic: str, options: Mapping[str, object] | None = None) -> Sender:
    """A sender to one topic; `options` are librdkafka's and win over ours."""
    troubles: deque[str] = deque(maxlen=1)
    settings = {
        **_PRODUCER,
        "bootstrap.servers": bootstrap,
        "error_cb": lambda error: troubles.append(str(error)),
        **(options or {}),
    }
    return Sender(topic, Producer(settings), troubles=troubles)


def ensure_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Create the topic unless it is there; an existing one keeps its partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": _LOG_NOTHING})
    created = admin.create_topics([NewTopic(topic, partitions, 1)], request_timeout=_WAIT_FOR_ANSWER)
    try:
        created[topic].result()
    except KafkaException as error:
        cause = error.args[0]
        if cause.code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise DeliveryFailed(
                f"topic {topic} cannot be made at {bootstrap}\n"
                f"  why: {cause.str()}\n"
                "  fix: start the broker (lode broker start), or give its address with --bootstrap"
            ) from error
