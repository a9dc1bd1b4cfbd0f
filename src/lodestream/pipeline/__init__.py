"""Declarations: pipelines, tables, the graph and its lint. No Spark is needed here."""

from lodestream.pipeline.declare import Pipeline
from lodestream.pipeline.decoders import Avro, Csv, Debezium, DecodeDecl, Json, Protobuf, Raw
from lodestream.pipeline.graph import Graph
from lodestream.pipeline.lint import Finding, lint
from lodestream.pipeline.load import load_pipeline
from lodestream.pipeline.location import Location
from lodestream.pipeline.partitioning import Partition, parse_partition
from lodestream.pipeline.sources import Files, Kafka, SourceDecl, Stream
from lodestream.pipeline.table import Expectation, Filter, Strategy, Table, Tier

__all__ = [
    "Avro",
    "Csv",
    "Debezium",
    "DecodeDecl",
    "Expectation",
    "Files",
    "Filter",
    "Finding",
    "Graph",
    "Json",
    "Kafka",
    "Location",
    "Partition",
    "Pipeline",
    "Protobuf",
    "Raw",
    "SourceDecl",
    "Strategy",
    "Stream",
    "Table",
    "Tier",
    "lint",
    "load_pipeline",
    "parse_partition",
]
