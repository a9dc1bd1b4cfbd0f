"""A project as the commands see it: its configuration, pipeline and graph. No JVM."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lodestream.config import Config
from lodestream.contracts import Contract, load_contract
from lodestream.pipeline import Graph, Pipeline, Table, load_pipeline


@dataclass(frozen=True, slots=True)
class Project:
    config: Config
    pipeline: Pipeline
    graph: Graph


def open_project(config: Config) -> Project:
    pipeline = load_pipeline(config.pipeline, config.root)
    return Project(config, pipeline, pipeline.graph())


def contract_of(table: Table) -> Contract | None:
    """The contract a table declares, from its file or its class."""
    declared = table.contract
    if declared is None:
        return None
    if isinstance(declared, Path):
        return load_contract(declared)
    made = declared.contract()
    return made if isinstance(made, Contract) else None
