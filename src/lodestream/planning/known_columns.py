"""Which columns each table has, told from declarations, contracts and queries before anything runs. No JVM.

What cannot be told for certain is None: nothing is said about it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lodestream.contracts import Contract
from lodestream.contracts.types import parse_type
from lodestream.errors import DeclarationError, LodeError
from lodestream.names import CARRIED, IS_CURRENT, VALID_FROM, VALID_TO
from lodestream.pipeline import Table
from lodestream.pipeline.function_shape import Shape, function_shape
from lodestream.pipeline.query_check import Columns, result_columns
from lodestream.planning.keyed import changes_by_key, declared_keys, leaders_of
from lodestream.planning.project import Project, contract_of

HISTORY: Columns = {VALID_FROM: None, VALID_TO: None, IS_CURRENT: "boolean"}
# A stored table's columns by its name, or None when it does not exist.
Stored = Callable[[str], Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class KnownTable:
    """`columns` as readers see them; `seen` is what its own query or function reads, by full name of the input.

    `made` are the columns that the query or function gives, before a contract conforms them; `shape` is what the text
    of a function shows; `undecodable` says why its `decode=` cannot work.
    """

    columns: Columns | None
    seen: Mapping[str, Columns | None] = field(default_factory=dict)
    made: Columns | None = None
    shape: Shape | None = None
    contract: Contract | None = None
    undecodable: DeclarationError | None = None


def known_tables(project: Project, stored: Stored | None = None) -> dict[str, KnownTable]:
    """Every table of the pipeline, inputs before readers.

    `stored` shows the columns of a table as it is: one that has left the contract stays there, and may be read.
    """
    found: dict[str, KnownTable] = {}
    for table in project.graph.everything.values():
        known = _known(project, table, found)
        found[table.name] = replace(known, columns=_and_kept(known, stored(table.name) if stored else None))
    return found


def _and_kept(known: KnownTable, held: Sequence[str] | None) -> Columns | None:
    if known.columns is None or known.contract is None or not held:
        return known.columns
    names = {one.lower() for one in known.columns}
    return {**known.columns, **{one: None for one in held if one.lower() not in names}}


def judges(project: Project, table: Table) -> bool:
    """Whether rows of a Silver table are held against something, so that the raw row rides along."""
    asked = table.contract or table.decode or declared_keys(table) or table.expectations or changes_by_key(table)
    return bool(asked) and not leaders_of(project.graph, table)


def driving(project: Project, table: Table) -> str | None:
    """The followed input whose rows become the rows of a Silver table."""
    return next(iter(project.graph.streams(table.name)), None)


def ddl_columns(ddl: str) -> Columns | None:
    """The columns of a schema as text; None when it is written in a way that only Spark reads."""
    try:
        return {name: str(kind) for name, kind in parse_type(f"struct<{ddl}>").members}
    except ValueError:
        return None


def _known(project: Project, table: Table, found: Mapping[str, KnownTable]) -> KnownTable:
    contract = contract_of(table)
    if table.tier == "bronze":
        return KnownTable(_captured(table))
    if table.is_reference:
        columns = _contracted(contract) if contract else _of_file(table)
        return KnownTable(_with_history(table, columns), contract=contract, made=columns)
    seen: dict[str, Columns | None] = {one: found[one].columns for one in project.graph.inputs(table.name)}
    undecodable = None
    if table.tier == "silver":
        undecodable = _decoded(project, table, contract, seen)
    made, shape = _made(project, table, seen)
    columns = _contracted(contract) if contract else _visible(made)
    return KnownTable(_with_history(table, columns), seen, made, shape, contract, undecodable)


def _contracted(contract: Contract) -> Columns:
    return {one.name: one.type for one in contract}


def _with_history(table: Table, columns: Columns | None) -> Columns | None:
    return {**columns, **HISTORY} if columns is not None and table.history else columns


def _visible(made: Columns | None) -> Columns | None:
    return {name: kind for name, kind in made.items() if name != CARRIED} if made is not None else None


def _captured(table: Table) -> Columns | None:
    known = (table.source.ddl or table.source.schema_text) if table.source else None
    return ddl_columns(known) if known else None


def _of_file(table: Table) -> Columns | None:
    """The declared schema of reference data, else the heading of its file."""
    source = table.reference
    if source is None or source.schema:
        return ddl_columns(source.schema) if source and source.schema else None
    if source.format != "csv" or source.file is None:
        return None
    try:
        with source.file.open(encoding="utf-8", newline="") as file:
            heading = next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
    plain = heading and all(name and name == name.strip() and name.isprintable() for name in heading)
    return dict.fromkeys(heading) if plain and len(set(heading)) == len(heading) else None


def _decoded(
    project: Project, table: Table, contract: Contract | None, seen: dict[str, Columns | None]
) -> DeclarationError | None:
    """Put what the function sees of its driving input into `seen`: decoded if declared, the raw row beside it."""
    name = driving(project, table)
    if name is None:
        return None
    undecodable, columns = None, seen[name]
    if table.decode is not None:
        from lodestream.sources.codecs.choose import codec_for

        columns = None
        try:
            folder = Path(table.location.file).parent
            codec = codec_for(table.decode, contract.fields if contract else None, root=folder)
            columns = {one.name: str(one.type) for one in codec.shape.columns}
        except DeclarationError as error:
            undecodable = error
        except (LodeError, OSError):
            columns = None  # a registry or a file that does not answer: told when it is needed
    if columns is not None and judges(project, table):
        columns = {**columns, CARRIED: None}
    seen[name] = columns
    return undecodable


def _made(project: Project, table: Table, seen: Mapping[str, Columns | None]) -> tuple[Columns | None, Shape | None]:
    if table.sql is not None:
        return result_columns(table.sql, seen), None
    if table.function is None or table.tier != "silver":
        return None, None
    full = project.graph.inputs(table.name)
    followed = driving(project, table)
    # A lookup alone is no row of the table: only what the driving input becomes is told.
    inputs = {
        written: list(columns) if (columns := seen[name]) is not None and name == followed else None
        for written, name in zip(table.inputs, full, strict=True)
    }
    shape = function_shape(table.function, inputs)
    kinds = (seen.get(followed) if followed else None) or {}
    return ({name: _untouched(name, shape, kinds) for name in shape.columns} if shape else None), shape


def _untouched(name: str, shape: Shape, kinds: Columns) -> str | None:
    """The type of a column that a function gives back as it came."""
    found = [kind for one, kind in kinds.items() if one.lower() == name.lower()]
    return found[0] if len(found) == 1 and name.lower() not in shape.made else None
