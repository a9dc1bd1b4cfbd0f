"""How many rows wait, asked without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lodestream.config import Config
from lodestream.errors import LodeError
from lodestream.pipeline import Kafka
from lodestream.tables.history import History
from lodestream.tables.snapshot import Snapshot

if TYPE_CHECKING:
    from lodestream.sources.kafka_admin import KafkaAdmin


# By topic: its id, and the offset after the last record of each partition.
Ends = Mapping[str, tuple[str, Mapping[int, int]]]


def kafka_ends(config: Config, source: Kafka) -> Ends | None:
    """How far the topics go; None when no broker answers."""
    bootstrap = source.bootstrap or _bootstrap(config)
    if bootstrap is None:
        return None
    from lodestream.sources.kafka_settings import native_settings

    try:
        admin = _admin(bootstrap, tuple(native_settings({**config.kafka.options, **source.options}).items()))
        names = admin.matching(source.pattern) if source.pattern else source.topics
        topics = admin.topics(names)
        ends = admin.offsets(topics.values(), "latest", source.isolation)
    except LodeError:
        return None
    return {name: (topics[name].id, partitions) for name, partitions in ends.items()}


def kafka_pending(ends: Ends | None, position: Mapping[str, Any] | None) -> int | None:
    """Records after the position; those of a topic that was made again count from its beginning."""
    if ends is None:
        return None
    waiting = 0
    for name, (topic, partitions) in ends.items():
        entry = (position or {}).get(name, {})
        ours = entry.get("offsets", {}) if entry.get("id") == topic else {}
        waiting += sum(max(0, end - int(ours.get(str(number), 0))) for number, end in partitions.items())
    return waiting


def table_pending(view: History | None, position: Mapping[str, Any] | None) -> int:
    """Rows that changed after the position. Where the position is not in the history, everything counts."""
    if view is None:
        return 0
    head = view.head()
    waiting = 0
    for snapshot in view.ancestors(head):
        if position is not None and snapshot.id == position.get("snapshot"):
            return waiting
        waiting += _changed(snapshot)
    return waiting if position is None or head is None else head.total_rows


def _changed(snapshot: Snapshot) -> int:
    """Rows that a reader has still to look at; of a table that is replaced in place, at most."""
    if snapshot.operation == "replace":
        return 0
    gone = 0 if snapshot.operation == "append" else int(snapshot.summary.get("deleted-records", "0"))
    return snapshot.added_rows + gone


@lru_cache(maxsize=8)
def _admin(bootstrap: str, options: tuple[tuple[str, str], ...]) -> KafkaAdmin:
    from lodestream.sources.kafka_admin import KafkaAdmin

    return KafkaAdmin(bootstrap, dict(options), timeout=3.0)


def _bootstrap(config: Config) -> str | None:
    if config.kafka.bootstrap != "embedded":
        return config.kafka.bootstrap
    from lodestream.runtime.broker import broker_status

    running = broker_status(config)
    return running.bootstrap if running else None
