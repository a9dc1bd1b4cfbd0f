"""`lode broker send`: events to the project's own Kafka, for trying a pipeline out. No JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lodestream.config import nearest
from lodestream.errors import BrokerUnavailable, ConfigError, RuntimeMissing
from lodestream.planning.project import Project
from lodestream.runtime.broker import broker_status

_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Sent:
    """Events that the broker has taken; `last` is where the last of them stands, as dead letters name it."""

    topic: str
    bootstrap: str
    events: int
    last: str | None
    tables: tuple[str, ...]


def send_events(
    project: Project,
    topic: str,
    values: Iterable[bytes],
    *,
    key: bytes | None = None,
    headers: Mapping[str, bytes] | None = None,
) -> Sent:
    """Send to a topic that a table reads: an event in any other would never be seen again."""
    tables = _readers(project, topic)
    bootstrap = _bootstrap(project)
    from confluent_kafka import KafkaException, Producer

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    sent: list[str] = []
    refused: list[str] = []

    def delivered(error: object, message: object) -> None:
        if error is not None:
            refused.append(str(error))
        else:
            sent.append(f"{topic}/{message.partition()}@{message.offset()}")  # type: ignore[attr-defined]

    try:
        for value in values:
            producer.produce(topic, value, key=key, headers=dict(headers or {}), on_delivery=delivered)
            producer.poll(0)
        left = producer.flush(_PATIENCE)
    except (KafkaException, BufferError) as error:
        left, refused = 1, [*refused, str(error)]
    if left or refused:
        raise BrokerUnavailable(
            f"the broker at {bootstrap} took {len(sent):,} events, and not the next",
            why=refused[0] if refused else f"it did not answer in {_PATIENCE:.0f} s",
            fix="`lode broker logs` has what it says",
        )
    return Sent(topic, bootstrap, len(sent), sent[-1] if sent else None, tables)


def _readers(project: Project, topic: str) -> tuple[str, ...]:
    sources = [(table.name, table.source) for table in project.graph if table.source is not None]
    found = tuple(name for name, source in sources if source.reads_topic(topic))
    if found:
        return found
    read = [one for _, source in sources for one in source.own_topics]
    close = nearest(topic, read)
    raise ConfigError(
        f"no table of this pipeline reads the topic {topic}",
        why=f"the topics that are read: {', '.join(read)}" if read else "none of its tables reads from Kafka",
        fix=f"did you mean {close}?" if close else "name one of them" if read else "declare one: Kafka(...)",
    )


def _bootstrap(project: Project) -> str:
    given = project.config.kafka.bootstrap
    if given != "embedded":
        raise ConfigError(
            f"this project's Kafka is {given}, not the embedded broker",
            why="events that are typed by hand are for trying things out",
            fix="use that cluster's own producer; or a profile whose kafka.bootstrap is embedded",
        )
    running = broker_status(project.config)
    if running is None:
        raise RuntimeMissing(
            "no broker is running",
            why=f"the embedded broker of {project.config.root} ends with the last command that uses it",
            fix="send while `lode run` goes on in another terminal, or keep one running: lode broker start",
        )
    return running.bootstrap
