"""Kafka through Spark's own stream source: the adapter's hardest customer, and a check on our own Kafka source."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from lodestream import Stream
from lodestream.sources.stream.reading import StreamSource


class Died(Exception):
    """The process ends here."""


def produce(bootstrap: str, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in numbers:
        producer.produce(topic, value=str(number))
    assert producer.flush(20) == 0


def test_records_come_once_over_deaths_between_publish_and_commit(broker: Any, spark: Any, tmp_path: Path) -> None:
    topic = f"t{uuid.uuid4().hex}"
    produce(broker.bootstrap, topic, range(500))
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    published: list[str] = []
    position: Any = None

    def publish(rows: Any, to: Any, then: str = "") -> None:
        nonlocal position
        values = [bytes(row.value).decode() for row in rows.collect()]
        if then == "die before":
            raise Died
        published.extend(values)
        position = json.loads(json.dumps(to))
        if then == "die after":
            raise Died

    for turn, then in enumerate(["die before", "die after", "", "die after", "die before", "", ""]):
        source = StreamSource(spark, Stream("kafka", options), tmp_path / f"scratch{turn}")
        try:
            source.pull(position, lambda rows, to, then=then: publish(rows, to, then), 200)
        except Died:
            assert then
        if turn in (2, 4):
            produce(broker.bootstrap, topic, range(500 + turn * 100, 600 + turn * 100))
    expected = [*range(500), *range(700, 800), *range(900, 1000)]
    assert Counter(published) == Counter(map(str, expected))


def test_a_batch_holds_about_the_rows_that_were_asked_for(broker: Any, spark: Any, tmp_path: Path) -> None:
    topic = f"t{uuid.uuid4().hex}"
    produce(broker.bootstrap, topic, range(1000))
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    sizes: list[int] = []
    source = StreamSource(spark, Stream("kafka", options), tmp_path / "scratch")
    assert source.pull(None, lambda rows, _: sizes.append(rows.count()), 300)
    assert sum(sizes) == 1000
    assert max(sizes) <= 300


@pytest.mark.parametrize("missing", ["LODE_TEST_NOT_SET"])
def test_a_secret_that_is_not_set_is_named(spark: Any, tmp_path: Path, missing: str) -> None:
    from lodestream.errors import ConfigError

    with pytest.raises(ConfigError, match=missing):
        StreamSource(spark, Stream("kafka", {"kafka.sasl.jaas.config": f"${{env:{missing}}}"}), tmp_path)
