"""Kafka topics, as declared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from lodestream.config import KAFKA_OPTIONS, Secret, nearest, sounds_secret
from lodestream.pipeline.location import Location, caller_location, declaration_error
from lodestream.pipeline.sources import Coordinates, SourceDeclaration, one_of

Isolation = Literal["read_committed", "read_uncommitted"]
Start = Literal["earliest", "latest"] | Mapping[str, Any]

BRONZE_DDL = (
    "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, "
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
)
COORDINATES = Coordinates(
    order=("partition", "offset", "topic"),
    # With the time, because a recreated topic counts from 0 again.
    event=("topic", "partition", "offset", "timestamp"),
    clock="timestamp",
    arrival="timestamp",
)


@dataclass(frozen=True, init=False)
class Kafka(SourceDeclaration):
    """Topics by name or by pattern. `start` counts only for partitions without a position yet.

    `start` is "earliest", "latest", {"timestamp": datetime, ISO text with zone, or epoch milliseconds}
    or {"offsets": {topic: {partition: offset}}}.
    """

    topics: tuple[str, ...]
    pattern: str | None
    start: Start
    options: Mapping[str, str | Secret]
    bootstrap: str | None
    isolation: Isolation
    ddl = BRONZE_DDL
    remote = True
    coordinates = COORDINATES

    def __init__(
        self,
        *topics: str,
        pattern: str | None = None,
        start: Start = "earliest",
        options: Mapping[str, str | Secret] | None = None,
        bootstrap: str | None = None,
        isolation: Isolation = "read_committed",
    ) -> None:
        here = caller_location()
        _check_topics(here, topics, pattern)
        _check_options(here, options or {})
        if isolation not in get_args(Isolation):
            raise declaration_error(here, f'unknown isolation "{isolation}"', fix=one_of(Isolation))
        object.__setattr__(self, "topics", topics)
        object.__setattr__(self, "pattern", pattern)
        object.__setattr__(self, "start", _checked_start(here, start, topics))
        object.__setattr__(self, "options", dict(options or {}))
        object.__setattr__(self, "bootstrap", bootstrap)
        object.__setattr__(self, "isolation", isolation)

    def describe(self) -> str:
        return f"Kafka {self.pattern or ', '.join(self.topics)}"

    @property
    def own_topics(self) -> tuple[str, ...]:
        return () if self.bootstrap is not None else (self.pattern,) if self.pattern else self.topics

    def reads_topic(self, topic: str) -> bool:
        if self.bootstrap is not None:
            return False
        return topic in self.topics or bool(self.pattern and re.fullmatch(self.pattern, topic))


def _check_topics(here: Location, topics: tuple[str, ...], pattern: str | None) -> None:
    if bool(topics) == bool(pattern):
        raise declaration_error(
            here,
            "Kafka needs topics or a pattern" if not topics else "Kafka takes topics or a pattern, not both",
            fix='Kafka("orders") or Kafka(pattern="orders[.].*")',
        )
    for topic in topics:
        if not isinstance(topic, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic):
            raise declaration_error(
                here, f"{topic!r} is no topic name", why="Kafka allows letters, digits, dot, _ and -"
            )
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise declaration_error(here, f'pattern "{pattern}" is no regular expression: {error}') from error


def _check_options(here: Location, options: Mapping[str, str | Secret]) -> None:
    for name, value in options.items():
        if name not in KAFKA_OPTIONS:
            close = nearest(name, KAFKA_OPTIONS)
            raise declaration_error(
                here,
                f'unknown Kafka option "{name}"',
                why="only client settings pass: the engine keeps positions, groups and formats",
                fix=f"did you mean {close}?" if close else "remove it",
            )
        if sounds_secret(name) and not isinstance(value, Secret):
            raise declaration_error(
                here,
                f"Kafka option {name} holds a secret in plain text",
                fix=f'put "{name}" = "${{env:NAME}}" under [profiles.NAME.kafka.options] in lode.toml',
            )


def _checked_start(here: Location, start: Start, topics: tuple[str, ...]) -> Start:
    if start in ("earliest", "latest"):
        return start
    if isinstance(start, Mapping) and len(start) == 1:
        if "timestamp" in start and _has_zone(start["timestamp"]):
            return dict(start)
        if "offsets" in start and isinstance(start["offsets"], Mapping):
            return {"offsets": _checked_offsets(here, start["offsets"], topics)}
    raise declaration_error(
        here,
        f"start={start!r} is no starting point",
        fix='use "earliest", "latest", {"timestamp": "2024-01-01T00:00:00Z"} or {"offsets": {"topic": {0: 42}}}',
    )


def _has_zone(moment: object) -> bool:
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            return False
    if isinstance(moment, datetime):
        return moment.tzinfo is not None
    return isinstance(moment, int) and not isinstance(moment, bool)


def _checked_offsets(here: Location, offsets: Mapping[Any, Any], topics: tuple[str, ...]) -> dict[str, dict[int, int]]:
    flat = not any(isinstance(inner, Mapping) for inner in offsets.values())
    by_topic = {topics[0]: offsets} if flat and len(topics) == 1 else offsets
    try:
        checked = {
            str(topic): {int(partition): int(offset) for partition, offset in inner.items()}
            for topic, inner in by_topic.items()
        }
    except (AttributeError, TypeError, ValueError):
        checked = {}
    if not checked or any(offset < 0 for inner in checked.values() for offset in inner.values()):
        raise declaration_error(
            here, f"offsets {dict(offsets)!r} are wrong", fix='write {"offsets": {"topic": {0: 42}}}'
        )
    stray = next((topic for topic in checked if topics and topic not in topics), None)
    if stray:
        raise declaration_error(here, f'offsets name the topic "{stray}", which is not read')
    return checked
