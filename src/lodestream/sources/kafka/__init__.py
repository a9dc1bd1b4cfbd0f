"""Kafka topics: read by explicit offset ranges, located by topic, partition and offset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lodestream.config import Config
from lodestream.sources.kafka.declaration import BRONZE_DDL, Kafka
from lodestream.sources.kinds import Backlog, GivenEvent, Opening, register_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lodestream.sources.source import Source

__all__ = ["BRONZE_DDL", "Kafka"]


def _open(declared: Kafka, opening: Opening) -> Source:
    from lodestream.sources.kafka.reading import open_topics

    return open_topics(declared, opening)


def _backlog(declared: Kafka, config: Config) -> Backlog | None:
    from lodestream.sources.kafka.lag import backlog

    return backlog(declared, config)


def _stand_in(declared: Kafka, spark: SparkSession, events: Sequence[tuple[int, GivenEvent]]) -> DataFrame:
    from lodestream.sources.kafka.stand_in import given_messages

    return given_messages(declared, spark, events)


register_source(Kafka, open=_open, backlog=_backlog, stand_in=_stand_in)
