"""Kafka topics, read by explicit offset ranges."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lodestream.errors import ConfigError, SourceGap, SourceRecreated
from lodestream.sources.kafka.admin import KafkaAdmin, Offsets
from lodestream.sources.kafka.declaration import Kafka
from lodestream.sources.kafka.settings import java_settings, native_settings
from lodestream.sources.kinds import Opening
from lodestream.sources.source import Position, Source

# Rows a task should read at least before one Kafka partition is split between two.
_ROWS_PER_TASK = 50_000
# What we ask for is there already. Closing a consumer waits for its last, needless fetch: half a second by default.
_FETCH_WAIT = "20"


class KafkaSource(Source):
    """Position: `{topic: {"id": topic id, "offsets": {partition: next offset}}}`."""

    def __init__(
        self, spark: SparkSession, declared: Kafka, admin: KafkaAdmin, reader_options: Mapping[str, str], group: str
    ) -> None:
        self.name = "kafka"
        self.pins_start = declared.start == "latest"
        self._spark = spark
        self._declared = declared
        self._admin = admin
        self._reader_options = reader_options
        self._group = group
        self._looked: tuple[Position, float] | None = None

    def latest(self) -> Position | None:
        asked = time.time()
        names = self._admin.matching(self._declared.pattern) if self._declared.pattern else self._declared.topics
        topics = self._admin.topics(names)
        if not topics:
            return None
        ends = self._admin.offsets(topics.values(), "latest", self._declared.isolation)
        found = {name: _entry(topic.id, ends.get(name, {})) for name, topic in sorted(topics.items())}
        self._looked = (found, asked)
        return found

    def asof(self, to: Position) -> float | None:
        return self._looked[1] if self._looked and self._looked[0] == to else None

    def start(self, latest: Position) -> Position:
        begin = self._declared.start
        if begin == "latest":
            return latest
        starts = self._declared_offsets(begin) if isinstance(begin, Mapping) else self._earliest(latest)
        return {name: _entry(entry["id"], starts.get(name, {})) for name, entry in latest.items()}

    def check(self, since: Position, latest: Position) -> None:
        for name, ours in since.items():
            theirs = latest.get(name)
            if theirs is None:
                raise _gone(name, ours)
            if theirs["id"] != ours["id"]:
                raise _recreated(name, ours, theirs)
            for partition, offset in ours["offsets"].items():
                if theirs["offsets"].get(partition, 0) < offset:
                    raise _shrunk(name, partition, offset, theirs["offsets"].get(partition, 0))
        # Those that appeared later, too: they are read from 0 on, as `_ranges` has it.
        earliest = self._earliest(latest)
        for name, entry in latest.items():
            ours = _since(since, name)
            for partition in entry["offsets"]:
                first, offset = earliest.get(name, {}).get(int(partition), 0), ours.get(partition, 0)
                if first > offset:
                    raise _gap(name, partition, offset, first, new=partition not in ours)

    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        pending = self.pending(since, latest)
        if pending <= rows:
            return latest
        share = rows / pending
        return {name: _entry(e["id"], _advance(_since(since, name), e["offsets"], share)) for name, e in latest.items()}

    def pending(self, since: Position, to: Position) -> int:
        return sum(max(0, end - start) for _, _, start, end in _ranges(since, to))

    def read(self, since: Position, to: Position) -> DataFrame:
        starts: Offsets = {}
        ends: Offsets = {}
        wanted = [(name, partition, start, end) for name, partition, start, end in _ranges(since, to) if end > start]
        for name, partition, start, end in wanted:
            starts.setdefault(name, {})[partition] = start
            ends.setdefault(name, {})[partition] = end
        splits = max(len(wanted), self.pending(since, to) // _ROWS_PER_TASK)
        reader = self._spark.read.format("kafka").option("kafka.fetch.max.wait.ms", _FETCH_WAIT)
        reader = reader.options(**self._reader_options)
        reader = (
            reader.option("assign", json.dumps({name: sorted(parts) for name, parts in starts.items()}))
            .option("startingOffsets", json.dumps(starts))
            .option("endingOffsets", json.dumps(ends))
            .option("includeHeaders", "true")
            .option("failOnDataLoss", "true")
            .option("minPartitions", str(max(1, splits)))
            .option("kafka.group.id", self._group)
            .option("kafka.isolation.level", self._declared.isolation)
        )
        rows = reader.load().select("key", "value", "headers", "topic", "partition", "offset", "timestamp")
        # Each task writes a file of its own: a thousand Kafka partitions must not make a thousand files a second.
        most = max(2 * self._spark.sparkContext.defaultParallelism, splits if splits > len(wanted) else 0)
        return rows.coalesce(most) if len(wanted) > most else rows

    def gone(self, since: Position) -> SourceRecreated:
        name = next(iter(since))
        return _gone(name, since[name])

    def confirm(self, to: Position) -> None:
        topics = self._admin.topics(to)
        for name, ours in to.items():
            if name not in topics:
                raise _gone(name, ours)
            if topics[name].id != ours["id"]:
                raise _recreated(name, ours, {"id": topics[name].id})

    def accept(self, since: Position, latest: Position) -> Position:
        """Same topic: from the earliest record that is left. Recreated topic: from its beginning."""
        earliest = self._earliest(latest)
        accepted: dict[str, Any] = {}
        for name, entry in latest.items():
            same = name in since and since[name]["id"] == entry["id"]
            ours = _since(since, name) if same else {}
            firsts = earliest.get(name, {})
            resumed = {
                p: min(max(int(ours.get(p, 0)), firsts.get(int(p), 0)), end) for p, end in entry["offsets"].items()
            }
            accepted[name] = {"id": entry["id"], "offsets": resumed}
        return accepted

    def _earliest(self, position: Position) -> Offsets:
        topics = self._admin.topics(position)
        return self._admin.offsets(topics.values(), "earliest", self._declared.isolation)

    def _declared_offsets(self, begin: Mapping[str, Any]) -> Offsets:
        if "timestamp" in begin:
            moment = _epoch_ms(begin["timestamp"])
            topics = self._admin.topics(self._declared.topics)
            found = self._admin.offsets(topics.values(), moment, self._declared.isolation)
            ends = self._admin.offsets(topics.values(), "latest", self._declared.isolation)
            # The broker answers -1 for "no record that late": begin at the end.
            return {n: {p: o if o >= 0 else ends[n][p] for p, o in parts.items()} for n, parts in found.items()}
        return {name: {int(p): int(o) for p, o in parts.items()} for name, parts in begin["offsets"].items()}


def open_topics(declared: Kafka, opening: Opening) -> KafkaSource:
    """Flows that talk to the same cluster in the same way share one connection."""
    bootstrap = declared.bootstrap or opening.bootstrap
    options = {**opening.config.kafka.options, **declared.options}
    native = native_settings(options)
    key = (KafkaAdmin, bootstrap, tuple(sorted(native.items())))
    admin = opening.shared.get(key)
    if admin is None:
        admin = opening.shared[key] = KafkaAdmin(bootstrap, native)
    group = f"lode-{opening.pipeline}-{opening.table}"
    return KafkaSource(opening.spark, declared, admin, java_settings(bootstrap, options), group)


def _entry(topic_id: str, offsets: Mapping[int, int] | Mapping[str, int]) -> dict[str, Any]:
    return {"id": topic_id, "offsets": {str(p): o for p, o in sorted(offsets.items(), key=lambda item: int(item[0]))}}


def _since(position: Position, name: str) -> Mapping[str, int]:
    offsets: Mapping[str, int] = position.get(name, {}).get("offsets", {})
    return offsets


def _ranges(since: Position, to: Position) -> list[tuple[str, int, int, int]]:
    """(topic, partition, from, to); a partition that `since` does not know was added later and begins at 0."""
    return [
        (name, int(partition), _since(since, name).get(partition, 0), end)
        for name, entry in to.items()
        for partition, end in entry["offsets"].items()
    ]


def _advance(since: Mapping[str, int], ends: Mapping[str, int], share: float) -> dict[str, int]:
    """The same share of every partition's backlog, so that none is starved; at least one record of each."""
    moved = {}
    for partition, end in ends.items():
        start = since.get(partition, 0)
        moved[partition] = min(end, start + max(1, int((end - start) * share))) if end > start else end
    return moved


def _epoch_ms(value: str | int | datetime) -> int:
    if isinstance(value, int):
        return value
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ConfigError(f"start timestamp {value!s} has no time zone", fix="write it as 2024-01-01T00:00:00+00:00")
    return int(moment.timestamp() * 1000)


_ACCEPT = "if you accept that, `lode run --accept-gap TABLE` records the decision in the table and goes on"


def _gone(name: str, ours: Mapping[str, Any]) -> SourceRecreated:
    return SourceRecreated(
        f"topic {name} is gone",
        why=f"the table has read topic id {ours['id']}, and the broker knows no topic of that name",
        fix="create the topic again; a new topic is a new source: " + _ACCEPT,
    )


def _recreated(name: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> SourceRecreated:
    return SourceRecreated(
        f"topic {name} was deleted and created again",
        why=f"the table has read topic id {ours['id']}, the broker now has {theirs['id']}: offsets do not compare",
        fix=_ACCEPT + ", reading the new topic from its beginning",
    )


def _shrunk(name: str, partition: str, ours: int, end: int) -> SourceGap:
    return SourceGap(
        f"topic {name} partition {partition} ends at offset {end}, before our position {ours}",
        why=f"{ours - end:,} records that the table has read are no longer in the topic (unclean leader election?)",
        fix=_ACCEPT + f", from offset {end}",
    )


def _gap(name: str, partition: str, ours: int, first: int, *, new: bool) -> SourceGap:
    begins = "it is new to the table and begins at 0" if new else f"the next offset to read is {ours}"
    return SourceGap(
        f"topic {name} partition {partition}: {first - ours:,} records are gone before we read them",
        why=f"{begins}, the earliest left is {first} (retention or deleted records)",
        fix=_ACCEPT + f", from offset {first}",
    )
