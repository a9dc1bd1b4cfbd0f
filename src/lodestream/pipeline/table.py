"""A table as the user declared it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lodestream.errors import DeclarationError
from lodestream.pipeline.decoders import DecoderDeclaration
from lodestream.pipeline.location import Location, declaration_error
from lodestream.pipeline.sinks import SinkDecl
from lodestream.pipeline.sources import ReferenceData, SourceDeclaration

Tier = Literal["bronze", "silver", "gold"]
Kind = Literal["source", "reference", "function", "sql"]
Strategy = Literal["delta", "affected", "full"]
Action = Literal["warn", "quarantine", "fail"]

TIERS: tuple[Tier, ...] = ("bronze", "silver", "gold")
# `silver__trips` names a tier in a parameter; `trips__dead` and `trips__changes` are a table's siblings.
JOINT = "__"


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows to keep; the others are counted under this name, not lost from the accounts."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """What rows should satisfy, and what happens to those that do not."""

    name: str
    sql: str
    action: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One declared table. `inputs` are the names as written; Graph resolves them."""

    name: str
    tier: Tier
    kind: Kind
    location: Location
    inputs: tuple[str, ...] = ()
    input_locations: tuple[Location, ...] = ()
    lookup: tuple[str, ...] | None = None  # as declared; None: reference tables are looked up
    lookups: tuple[str, ...] = ()  # as resolved by Graph: the inputs that are read whole
    corrected_by: tuple[str, ...] = ()  # the lookups whose changes correct rows that are stored already
    source: SourceDeclaration | None = None
    decode: DecoderDeclaration | None = None
    function: Callable[..., Any] | None = None
    code: str | None = None  # the fingerprint of what the function was loaded from; Pipeline.graph() fills it in
    sql: str | None = None
    sql_path: Path | None = None
    problem: DeclarationError | None = None  # its query or contract cannot be read now: it can be listed, not run
    contract: Path | type[Any] | None = None
    keys: tuple[str, ...] = ()
    sequence_by: tuple[str, ...] = ()
    delete_when: str | None = None
    history: bool = False
    partition_by: tuple[str, ...] = ()
    dedupe_within: tuple[str, ...] = ()  # a key counts once in each of these periods; none: once in the table
    every: float | None = None
    owner: str | None = None
    strategy: Strategy | None = None
    export: Path | None = None  # as declared: a Parquet sink
    sinks: tuple[SinkDecl, ...] = ()
    verify: float | None = None  # seconds between two verifications; None: only when asked
    filters: tuple[Filter, ...] = ()
    allow_no_rows: bool = False  # an event that the function gives no row for is counted, and no error
    expectations: tuple[Expectation, ...] = ()
    description: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def short(self) -> str:
        return self.name.partition(".")[2]

    @property
    def is_reference(self) -> bool:
        return self.kind == "reference"

    @property
    def reference(self) -> ReferenceData | None:
        """The file of reference data."""
        return self.source if isinstance(self.source, ReferenceData) else None


def check_name(name: object, location: Location, what: str = "table") -> str:
    """The name, if it can be one in every catalog, file system and function signature."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,99}", name):
        raise declaration_error(
            location,
            f"{name!r} cannot be the name of a {what}",
            why="names are lowercase letters, digits and underscores, and start with a letter",
            fix=f'use "{_tidy(str(name))}"',
        )
    if JOINT in name or name.endswith("_"):
        raise declaration_error(
            location,
            f'"{name}" cannot be the name of a {what}',
            why="a double underscore separates a table from its siblings, such as trips__dead",
            fix=f'use "{_tidy(name)}"',
        )
    return name


def _tidy(name: str) -> str:
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.rpartition(".")[2])
    tidy = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    return tidy if tidy[:1].isalpha() else f"t_{tidy}".rstrip("_")
