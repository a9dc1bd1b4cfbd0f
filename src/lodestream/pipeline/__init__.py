"""Declarations: pipelines, tables, the graph and its lint. No Spark is needed here."""

from lodestream.pipeline.declare import Pipeline
from lodestream.pipeline.decoders import DecoderDeclaration
from lodestream.pipeline.graph import Graph
from lodestream.pipeline.lint import Finding, lint
from lodestream.pipeline.load import load_pipeline
from lodestream.pipeline.location import Location
from lodestream.pipeline.partitioning import Partition, parse_partition
from lodestream.pipeline.sources import SourceDeclaration
from lodestream.pipeline.table import Expectation, Filter, Strategy, Table, Tier

__all__ = [
    "DecoderDeclaration",
    "Expectation",
    "Filter",
    "Finding",
    "Graph",
    "Location",
    "Partition",
    "Pipeline",
    "SourceDeclaration",
    "Strategy",
    "Table",
    "Tier",
    "lint",
    "load_pipeline",
    "parse_partition",
]
