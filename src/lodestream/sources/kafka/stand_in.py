"""Events that a test gives instead of a topic, as rows of Bronze."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lodestream.sources.kafka.declaration import Kafka
from lodestream.sources.kinds import GivenEvent

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def given_messages(declared: Kafka, spark: SparkSession, events: Sequence[tuple[int, GivenEvent]]) -> DataFrame:
    """An event without a topic comes from the first declared one; its number is its offset."""
    topic = (declared.topics or (declared.pattern,))[0]
    rows = pa.table(
        {
            "key": pa.array([event.key_bytes for _, event in events], pa.binary()),
            "value": pa.array([event.payload for _, event in events], pa.binary()),
            "headers": pa.array([_headers(event) for _, event in events], _HEADERS),
            "topic": pa.array([event.topic or topic for _, event in events], pa.string()),
            "partition": pa.array([event.partition for _, event in events], pa.int32()),
            "offset": pa.array([number for number, _ in events], pa.int64()),
            "micros": pa.array([event.micros for _, event in events], pa.int64()),
        }
    )
    return spark.createDataFrame(rows).selectExpr("* EXCEPT (micros)", "timestamp_micros(micros) AS timestamp")


def _headers(event: GivenEvent) -> list[dict[str, Any]] | None:
    return [{"key": key, "value": value} for key, value in event.header_bytes.items()] or None
