"""How many rows wait, asked without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from lodestream.config import Config
from lodestream.errors import LodeError
from lodestream.pipeline import Kafka
from lodestream.runtime.broker import broker_status
from lodestream.sources.kafka_admin import KafkaAdmin
from lodestream.sources.kafka_settings import native_settings
from lodestream.tables.inspect import TableView


def kafka_pending(config: Config, source: Kafka, position: Mapping[str, Any] | None) -> int | None:
    """Records after the position; None when no broker answers."""
    bootstrap = source.bootstrap or _bootstrap(config)
    if bootstrap is None:
        return None
    try:
        admin = _admin(bootstrap, tuple(native_settings({**config.kafka.options, **source.options}).items()))
        names = admin.matching(source.pattern) if source.pattern else source.topics
        topics = admin.topics(names)
        ends = admin.offsets(topics.values(), "latest", source.isolation)
    except LodeError:
        return None
    waiting = 0
    for name, partitions in ends.items():
        entry = (position or {}).get(name, {})
        ours = entry.get("offsets", {}) if entry.get("id") == topics[name].id else {}
        waiting += sum(max(0, end - int(ours.get(str(number), 0))) for number, end in partitions.items())
    return waiting


def table_pending(view: TableView | None, position: Mapping[str, Any] | None) -> int:
    """Rows appended after the position. Where the position is not in the history, everything counts."""
    if view is None:
        return 0
    head = view.head()
    waiting = 0
    for snapshot in view.ancestors(head):
        if position is not None and snapshot.id == position.get("snapshot"):
            return waiting
        waiting += snapshot.added_rows if snapshot.operation == "append" else 0
    return waiting if position is None or head is None else head.total_rows


@lru_cache(maxsize=8)
def _admin(bootstrap: str, options: tuple[tuple[str, str], ...]) -> KafkaAdmin:
    return KafkaAdmin(bootstrap, dict(options), timeout=3.0)


def _bootstrap(config: Config) -> str | None:
    if config.kafka.bootstrap != "embedded":
        return config.kafka.bootstrap
    running = broker_status(config)
    return running.bootstrap if running else None
