"""How many records wait in topics, asked of the broker: no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lodestream.config import Config
from lodestream.errors import LodeError
from lodestream.sources.kafka.declaration import Kafka
from lodestream.sources.kinds import Backlog, Waiting

if TYPE_CHECKING:
    from lodestream.sources.kafka.admin import KafkaAdmin

# By topic: its id, and the offset after the last record of each partition.
Ends = Mapping[str, tuple[str, Mapping[int, int]]]


def backlog(declared: Kafka, config: Config) -> Backlog | None:
    ends = topic_ends(config, declared)
    if ends is None:
        return None
    return lambda positions: Waiting(pending(ends, positions.get("kafka")))


def topic_ends(config: Config, source: Kafka) -> Ends | None:
    """How far the topics go; None when no broker answers."""
    bootstrap = source.bootstrap or _bootstrap(config)
    if bootstrap is None:
        return None
    from lodestream.sources.kafka.settings import native_settings

    try:
        admin = _admin(bootstrap, tuple(native_settings({**config.kafka.options, **source.options}).items()))
        names = admin.matching(source.pattern) if source.pattern else source.topics
        topics = admin.topics(names)
        ends = admin.offsets(topics.values(), "latest", source.isolation)
    except LodeError:
        return None
    return {name: (topics[name].id, partitions) for name, partitions in ends.items()}


def pending(ends: Ends, position: Mapping[str, Any] | None) -> int:
    """Records after the position; those of a topic that was made again count from its beginning."""
    waiting = 0
    for name, (topic, partitions) in ends.items():
        entry = (position or {}).get(name, {})
        ours = entry.get("offsets", {}) if entry.get("id") == topic else {}
        waiting += sum(max(0, end - int(ours.get(str(number), 0))) for number, end in partitions.items())
    return waiting


@lru_cache(maxsize=8)
def _admin(bootstrap: str, options: tuple[tuple[str, str], ...]) -> KafkaAdmin:
    from lodestream.sources.kafka.admin import KafkaAdmin

    return KafkaAdmin(bootstrap, dict(options), timeout=3.0)


def _bootstrap(config: Config) -> str | None:
    if config.kafka.bootstrap != "embedded":
        return config.kafka.bootstrap
    from lodestream.runtime.broker import broker_status

    running = broker_status(config)
    return running.bootstrap if running else None
