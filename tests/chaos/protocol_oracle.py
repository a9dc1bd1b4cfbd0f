"""A small real project, a producer, and an independent judge of what the tables must hold."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from lodestream.config import Config, load_config
from lodestream.observe import Event, read_events
from lodestream.tables.inspect import Inspector
from lodestream.tables.snapshot import Stamp

PIPELINE = """
from lodestream import Json, Kafka, Pipeline

chaos = Pipeline("chaos")
events_raw = chaos.bronze("events_raw", Kafka("{topic}"))


@chaos.silver(decode=Json("id bigint, kind string, cents bigint"))
def events(events_raw):
    return events_raw


chaos.gold("totals", sql="select kind, count(*) as n, sum(cents) as cents from silver.events group by kind")
"""
SETTINGS = """
pipeline = "pipeline.py"
profile = "local"

[profiles.local.kafka]
bootstrap = "{bootstrap}"

[profiles.local.engine]
target = "500 ms"
retry_wait = "1 s"

[profiles.local.spark]
driver_memory = "600m"

[profiles.local.catalog.properties]
"jdbc.busy_timeout" = "{busy_millis}"
"""
BRONZE, SILVER, DEAD, GOLD = "bronze.events_raw", "silver.events", "silver.events__dead", "gold.totals"
KINDS = ("cash", "card", "other")
Place = tuple[str, int, int]


def wait_until(
    what: str, holds: Callable[[], Any], *, timeout: float = 180.0, otherwise: Callable[[], str] = lambda: ""
) -> Any:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        found = holds()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {timeout:.0f} s: {what}\n{otherwise()}")


@dataclass
class Driver:
    """One `lode run` process."""

    process: subprocess.Popen[bytes]
    output: Path

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ends(self, timeout: float = 120.0) -> int:
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout:.0f} s\n{self.said()}") from None

    def retries(self, error: str) -> int:
        """Told on its screen, which does not depend on the project's disk."""
        lines = self.output.read_text(errors="replace").splitlines()
        return sum(1 for line in lines if " flow.retry " in line and f" {error}: " in line)

    def said(self) -> str:
        return self.output.read_text(errors="replace")[-6000:]


class Project:
    """A folder with a pipeline, as a user would have it."""

    def __init__(self, root: Path, bootstrap: str, topic: str, *, busy_millis: int = 30_000) -> None:
        self.root = root
        self.bootstrap = bootstrap
        self.topic = topic
        root.mkdir(parents=True, exist_ok=True)
        (root / "pipeline.py").write_text(PIPELINE.format(topic=topic))
        (root / "lode.toml").write_text(SETTINGS.format(bootstrap=bootstrap, busy_millis=busy_millis))
        self._drivers: list[Driver] = []

    @property
    def config(self) -> Config:
        return load_config(self.root)

    def start(self, *arguments: str, failpoints: str = "", environment: Mapping[str, str] | None = None) -> Driver:
        source = str(Path(__file__).parents[2] / "src")
        output = self.root / f"driver{len(self._drivers)}.log"
        with output.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "lodestream.cli", "run", *arguments],
                cwd=self.root,
                env={**os.environ, "PYTHONPATH": source, "LODE_FAILPOINTS": failpoints, **(environment or {})},
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        self._drivers.append(Driver(process, output))
        return self._drivers[-1]

    def stop_all(self) -> None:
        for driver in self._drivers:
            if driver.process.poll() is None:
                driver.signal(signal.SIGCONT)
                driver.kill()

    def rows(self, table: str) -> list[dict[str, Any]]:
        view = Inspector(self.config).look(table)
        if view is None or view.head() is None:
            return []
        found: list[dict[str, Any]] = view.table.scan().to_arrow().to_pylist()
        return found

    def head(self, table: str) -> int | None:
        view = Inspector(self.config).look(table)
        head = view.head() if view else None
        return head.id if head else None

    def stamps(self, table: str) -> list[Stamp]:
        return [one.stamp for one in self.stamped(table)]

    def stamped(self, table: str) -> list[Any]:
        """The snapshots of our batches, oldest first, as far as `main` reaches."""
        view = Inspector(self.config).look(table)
        found = view.ancestors(view.head()) if view else []
        return [one for one in found if one.stamp is not None][::-1]

    def events(self, name: str, table: str | None = None) -> list[Event]:
        return list(read_events(self.config.state_dir, name=name, table=table))


@lru_cache
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def create_topic(bootstrap: str, topic: str, partitions: int = 3, **config: str) -> None:
    made = admin(bootstrap).create_topics([NewTopic(topic, partitions, 1, config=config)])
    made[topic].result(20)
    wait_until(f"topic {topic}", lambda: topic in admin(bootstrap).list_topics(timeout=10).topics, timeout=20)


def delete_topic(bootstrap: str, topic: str) -> None:
    admin(bootstrap).delete_topics([topic])[topic].result(20)
    wait_until(f"{topic} gone", lambda: topic not in admin(bootstrap).list_topics(timeout=10).topics, timeout=20)


def topic_id(bootstrap: str, topic: str) -> str:
    described = admin(bootstrap).describe_topics(TopicCollection([topic]))[topic].result(20)
    return str(described.topic_id)


def event(number: int) -> bytes:
    if number % 40 == 0:
        return b'{"id": %d, "kind": ' % number  # cut off: a dead letter
    return json.dumps({"id": number, "kind": KINDS[number % 3], "cents": number % 1000}).encode()


def send(bootstrap: str, topic: str, numbers: Sequence[int], *, partition: int | None = None) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0})
    for number in numbers:
        where = {} if partition is None else {"partition": partition}
        producer.produce(topic, event(number), key=str(number % 17).encode(), **where)
        producer.poll(0)
    assert producer.flush(30) == 0


class Steady(threading.Thread):
    """A producer at a steady pace, until it is told to stop."""

    def __init__(self, bootstrap: str, topic: str, rate: int = 1000) -> None:
        super().__init__(daemon=True)
        # Idempotent: a broker that dies after it has written a message is not given that message again.
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 0, "enable.idempotence": True}
        self._producer = Producer(settings)
        self._topic = topic
        self._rate = rate
        self._halt = threading.Event()
        self.sent = 0

    def run(self) -> None:
        began = time.monotonic()
        while not self._halt.is_set():
            due = int((time.monotonic() - began) * self._rate)
            while self.sent < due:
                self._producer.produce(self._topic, event(self.sent), key=str(self.sent % 17).encode())
                self.sent += 1
            self._producer.poll(0)
            self._halt.wait(0.05)

    def finish(self) -> int:
        self._halt.set()
        self.join()
        assert self._producer.flush(60) == 0
        return self.sent


@dataclass(frozen=True)
class Message:
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def place(self) -> Place:
        return self.topic, self.partition, self.offset


def consume(bootstrap: str, topic: str) -> list[Message]:
    """Everything in the topic, read by other code than ours."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.message.max.bytes": 20_000_000,
        }
    )
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    found, ended = [], 0
    while ended < len(partitions):
        for message in consumer.consume(5000, timeout=10):
            if message.error():
                ended += 1
            else:
                found.append(_message(message))
    consumer.close()
    return found


def _message(raw: Any) -> Message:
    headers = tuple((name, value) for name, value in raw.headers() or ())
    return Message(raw.topic(), raw.partition(), raw.offset(), raw.key(), raw.value(), headers)


def check_all(project: Project) -> int:
    """Every table against the topic; the number of events."""
    messages = consume(project.bootstrap, project.topic)
    check_bronze(project, messages)
    check_silver(project, messages)
    check_gold(project, messages)
    for table in (BRONZE, SILVER, GOLD):
        check_chain(project, table, messages)
        check_files(project, table)
    return len(messages)


def check_bronze(project: Project, messages: Sequence[Message]) -> None:
    """Each message once, byte for byte, under the identity of its topic."""
    wanted = Counter((one.place, _digest(one.key, one.value)) for one in messages)
    held = Counter(
        ((r["topic"], r["partition"], r["offset"]), _digest(r["key"], r["value"])) for r in project.rows(BRONZE)
    )
    assert held == wanted, _difference(wanted, held)
    stamps = project.stamps(BRONZE)
    assert {one.positions["kafka"][project.topic]["id"] for one in stamps} == {
        topic_id(project.bootstrap, project.topic)
    }


def check_silver(project: Project, messages: Sequence[Message]) -> None:
    good = Counter(json.dumps(_decoded(one), sort_keys=True) for one in messages if _decoded(one) is not None)
    held = Counter(json.dumps(row, sort_keys=True) for row in project.rows(SILVER))
    assert held == good, _difference(good, held)
    broken = Counter(one.place for one in messages if _decoded(one) is None)
    dead = Counter((row["topic"], row["partition"], row["offset"]) for row in project.rows(DEAD))
    assert dead == broken, _difference(broken, dead)


def check_gold(project: Project, messages: Sequence[Message]) -> None:
    wanted: dict[str, list[int]] = {}
    for row in filter(None, map(_decoded, messages)):
        group = wanted.setdefault(row["kind"], [0, 0])
        group[0] += 1
        group[1] += row["cents"]
    held = {row["kind"]: [row["n"], row["cents"]] for row in project.rows(GOLD)}
    assert held == wanted


def check_chain(project: Project, table: str, messages: Sequence[Message]) -> None:
    """Each snapshot begins where its predecessor ended, and Bronze added exactly that range."""
    stamped = project.stamped(table)
    for before, after in pairwise(one.stamp for one in stamped):
        assert after.started_from == before.positions, f"{table} batch {after.batch}"
        assert after.batch == before.batch + 1
    there: dict[tuple[str, int], list[int]] = {}
    for topic, partition, offset in sorted(one.place for one in messages):
        there.setdefault((topic, partition), []).append(offset)
    for one in stamped if table == BRONZE else ():
        span = _before(one.stamp.positions, there) - _before(one.stamp.started_from or {}, there)
        assert one.added_rows == span, f"batch {one.stamp.batch} added {one.added_rows} rows for {span} messages"


def check_files(project: Project, table: str) -> None:
    """Every file that the table refers to is there, and none is in it twice."""
    view = Inspector(project.config).look(table)
    assert view is not None
    paths = view.table.inspect.files().column("file_path").to_pylist()
    assert len(paths) == len(set(paths)), f"{table} holds a file twice"
    missing = [path for path in paths if not Path(path.removeprefix("file:")).is_file()]
    assert not missing, f"{table} has lost {missing[:3]}"


def _before(positions: Mapping[str, Any], there: Mapping[tuple[str, int], list[int]]) -> int:
    """How many messages lie before the positions; transactions leave offsets without one."""
    return sum(
        bisect_left(there.get((topic, int(partition)), []), offset)
        for topic, entry in positions.get("kafka", {}).items()
        for partition, offset in entry["offsets"].items()
    )


def _decoded(message: Message) -> dict[str, Any] | None:
    try:
        row: dict[str, Any] = json.loads(message.value or b"")
    except ValueError:
        return None
    return row


def _digest(key: bytes | None, value: bytes | None) -> str:
    return hashlib.sha256(repr((key, value)).encode()).hexdigest()


def _difference(wanted: Counter[Any], held: Counter[Any]) -> str:
    missing, extra = wanted - held, held - wanted
    return f"{missing.total()} missing {list(missing)[:3]}, {extra.total()} too many {list(extra)[:3]}"


def published(project: Project, table: str) -> Callable[[], int]:
    """How many batches the run logs of the project tell of."""
    return lambda: len(project.events("batch.published", table))


def events_in_gold(project: Project) -> int:
    return sum(row["n"] for row in project.rows(GOLD))


def say(text: str) -> None:
    """Shown by pytest when the test fails."""
    sys.stdout.write(text + "\n")
