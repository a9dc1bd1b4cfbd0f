"""Lodestream: a streaming medallion lakehouse for Python teams."""

from lodestream.errors import LodeError
from lodestream.pipeline import (
    Avro,
    Csv,
    Debezium,
    Files,
    Json,
    Kafka,
    Pipeline,
    Protobuf,
    Raw,
    Stream,
)

__all__ = [
    "Avro",
    "Csv",
    "Debezium",
    "Files",
    "Json",
    "Kafka",
    "LodeError",
    "Pipeline",
    "Protobuf",
    "Raw",
    "Stream",
]
