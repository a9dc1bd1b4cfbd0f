"""Start everything, in the order that shows Gold soonest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql import SparkSession

from lodestream.demo.folder import DemoFolder
from lodestream.demo.generator import Generator
from lodestream.engine import RunEnd, Status, run_pipeline
from lodestream.observe import BatchPublished, Listener, only
from lodestream.planning.project import Project, open_project
from lodestream.runtime.broker import BrokerInfo, start_broker, stop_broker
from lodestream.runtime.jars import ensure_jars
from lodestream.runtime.lock import Group
from lodestream.runtime.progress import Progress
from lodestream.runtime.session import start_session

# The table on the front page: the demo is there when it has rows of it.
GOLD = "gold.daily_summary"

TOPIC = "taxi.trips"
_KAFKA_SECONDS = 10
_JARS: tuple[Group, ...] = ("spark", "broker")


@dataclass
class Seconds:
    """When things were reached, counted from the start of the command."""

    began: float
    setup: float | None = None
    spark: float | None = None
    first_gold: float | None = None
    total: float | None = None

    def since(self) -> float:
        return round(time.monotonic() - self.began, 2)


@dataclass
class Demo:
    """A started demo: a broker that answers, a Spark session, and nothing running yet."""

    project: Project
    broker: BrokerInfo
    spark: SparkSession
    seconds: Seconds
    generator: Generator

    @classmethod
    @contextmanager
    def started(
        cls,
        folder: DemoFolder,
        progress: Progress,
        seconds: Seconds,
        *,
        seed: int,
        events: int | None = None,
        rate: float = 0,
    ) -> Iterator[Demo]:
        """Everything is up, and events are being made. All of it ends with the block."""
        with folder.claimed():
            project = open_project(folder.config)
            # Here, not in the thread below: Ctrl-C reaches this one, and a download then leaves nothing behind.
            for group in _JARS:
                ensure_jars(group, project.config.runtime, progress)
            spark = _Starting(lambda: start_session(project.config, app_name="lode-demo", progress=progress), seconds)
            try:
                broker = start_broker(project.config, progress)
                seconds.setup = seconds.since()
                log = project.config.state_dir / "generator.log"
                sent = events_in_topic(broker.bootstrap)
                generator = Generator(broker.bootstrap, log, seed=seed, start_at=sent, events=events, rate=rate)
                try:
                    yield cls(project, broker, spark.session(), seconds, generator)
                finally:
                    generator.stop()
            finally:
                stop_broker(project.config)

    def run(self, *, once: bool, listener: Listener, stop: threading.Event) -> RunEnd:
        """Run the pipeline; `listener` hears of each event."""

        def note_gold(event: BatchPublished) -> None:
            if event.table == GOLD:
                self.seconds.first_gold = self.seconds.first_gold or self.seconds.since()

        listeners = (only(note_gold, BatchPublished), listener)
        end = run_pipeline(self.project, once=once, listeners=listeners, stop=stop, spark=self.spark)
        self.seconds.total = self.seconds.since()
        return end


class _Starting:
    """Spark starts in a thread of its own, beside the broker."""

    def __init__(self, start: Callable[[], SparkSession], seconds: Seconds) -> None:
        self._start, self._seconds = start, seconds
        self._session: SparkSession | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="spark-start", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        began = time.monotonic()
        try:
            self._session = self._start()
            self._seconds.spark = round(time.monotonic() - began, 2)
        except BaseException as error:
            self._error = error

    def session(self) -> SparkSession:
        while self._thread.is_alive():
            self._thread.join(0.2)  # in slices, so that Ctrl-C is heard
        if self._error is not None:
            raise self._error
        assert self._session is not None  # noqa: S101 - one of the two is set
        return self._session


def events_in_topic(bootstrap: str) -> int:
    """How many events the topic holds, from the broker's own offsets; none when there is no topic yet."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "lode-demo", "log_level": 0})
    try:
        topic = consumer.list_topics(timeout=_KAFKA_SECONDS).topics.get(TOPIC)
        partitions = topic.partitions if topic and topic.error is None else ()
        ends = [consumer.get_watermark_offsets(TopicPartition(TOPIC, one), _KAFKA_SECONDS) for one in partitions]
        return sum(high for _, high in ends)
    except KafkaException:
        return 0
    finally:
        consumer.close()


def _judges(project: Project, name: str) -> bool:
    """Whether rows of this table can become dead letters."""
    table = project.graph[name]
    return table.decode is not None or (table.contract is not None and not table.is_reference)


def summary(status: Status, events: int, seconds: Seconds, peak_mb: int, project: Project) -> dict[str, Any]:
    """What `lode demo --once --json` prints."""
    config = project.config
    return {
        "events": events,
        "tables": {table.name: {"rows": table.rows, "snapshot": table.snapshot} for table in status.tables},
        "dead": {table.name: table.dead or 0 for table in status.tables if _judges(project, table.name)},
        "seconds": {
            "setup": seconds.setup,
            "spark": seconds.spark,
            "first_gold": seconds.first_gold,
            "total": seconds.total,
        },
        "peak_mb": peak_mb,
        "warehouse": config.warehouse(),
        "catalog": config.catalog_uri(),
    }
