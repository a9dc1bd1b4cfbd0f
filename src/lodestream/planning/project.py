"""A project as the commands see it: its configuration, pipeline and graph. No JVM."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lodestream.config import Config
from lodestream.contracts import Contract, load_contract
from lodestream.errors import DeclarationError
from lodestream.pipeline import Graph, Pipeline, Table, load_pipeline


@dataclass(frozen=True, slots=True)
class Project:
    config: Config
    pipeline: Pipeline
    graph: Graph
    problems: tuple[tuple[str, DeclarationError], ...] = ()
    """What is wrong with tables that are not in the graph, each with the table's name."""


def open_project(config: Config, *, tolerant: bool = False) -> Project:
    """`tolerant` is for commands that only look: a table whose files cannot be read now keeps no other from view."""
    pipeline = load_pipeline(config.pipeline, config.root)
    return Project(config, pipeline, pipeline.graph(tolerant=tolerant))


def open_sound(config: Config) -> Project:
    """The project without the tables that cannot be as declared; `problems` says why. Only to look at, not to run."""
    pipeline = load_pipeline(config.pipeline, config.root)
    graph, wrong = pipeline.sound_graph()
    return Project(config, pipeline, graph, tuple((name, one) for name, found in wrong.items() for one in found))


def contract_of(table: Table) -> Contract | None:
    """The contract a table declares, from its file or its class."""
    declared = table.contract
    if declared is None:
        return None
    if isinstance(declared, Path):
        return load_contract(declared)
    made = declared.contract()
    return made if isinstance(made, Contract) else None
