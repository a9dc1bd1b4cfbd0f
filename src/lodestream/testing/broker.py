"""A real Kafka for tests that want one."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from lodestream.config import Config
from lodestream.errors import BrokerUnavailable
from lodestream.runtime.broker import BrokerInfo, start_broker, stop_broker

if TYPE_CHECKING:
    from lodestream.testing.events import Event

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_PATIENCE = 30.0


@contextmanager
def kafka_broker() -> Iterator[BrokerInfo]:
    """Started once for all tests of a session (about three seconds), and ended with the process whatever happens."""
    with tempfile.TemporaryDirectory(prefix="lode-broker-") as folder:
        config = Config(root=Path(folder))
        yield start_broker(config)
        stop_broker(config)


def new_topics(bootstrap: str, topics: Sequence[str], partitions: int = 1) -> None:
    """Empty topics of these names: what another test has sent to them is gone. A pattern among them names no topic."""
    topics = [one for one in topics if _NAME.fullmatch(one)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    there = set(admin.list_topics(timeout=_PATIENCE).topics) & set(topics)
    for done in admin.delete_topics(sorted(there)).values() if there else ():
        done.result(_PATIENCE)
    deadline = time.monotonic() + _PATIENCE
    missing = list(topics)
    while missing:
        made = admin.create_topics([NewTopic(topic, partitions, 1) for topic in missing])
        missing = [topic for topic, done in made.items() if not _is_done(done)]
        if missing and time.monotonic() > deadline:
            raise BrokerUnavailable(f"the broker does not make {', '.join(missing)} anew", why="they are being deleted")


def send(bootstrap: str, topic: str, events: Sequence[Event]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    for event in events:
        producer.produce(
            event.topic or topic,
            value=event.payload,
            key=event.key_bytes,
            partition=event.partition,
            headers=list(event.header_bytes.items()),
            timestamp=int(event.at.timestamp() * 1000) if event.at else 0,
        )
    if producer.flush(_PATIENCE):
        raise BrokerUnavailable(f"the broker at {bootstrap} did not take the events in {_PATIENCE:.0f} s")


def _is_done(made: object) -> bool:
    try:
        made.result(_PATIENCE)  # type: ignore[attr-defined]
    except KafkaException:
        time.sleep(0.1)  # the old one of that name is still on its way out
        return False
    return True
