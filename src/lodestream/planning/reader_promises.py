"""Contracts as promises between teams: what a new version breaks, for whom, and the way that breaks nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lodestream.config import Config
from lodestream.contracts import Contract
from lodestream.contracts.compatibility import Change, changes, next_version
from lodestream.errors import ContractError, DeclarationError, LodeError
from lodestream.pipeline import Finding, Graph, Table
from lodestream.pipeline.sql import read_query
from lodestream.planning.project import Project, contract_of
from lodestream.tables.promised import accept, promised

# A table's properties by its name, or None when it does not exist.
Look = Callable[[str], Mapping[str, str] | None]


_TWO_STEPS = "make it in two steps: add the new beside the old, move the readers, then remove the old"


@dataclass(frozen=True, slots=True)
class Consumer:
    """A table that reads another.

    `columns` are those its query names, in lower case; None when a function or a star hides them.
    """

    name: str
    owner: str | None
    columns: frozenset[str] | None

    def relies_on(self, change: Change, contract: Contract) -> bool:
        column = change.path.partition(".")[0].partition("[")[0]
        return self.columns is None or column not in contract or column.lower() in self.columns

    def __str__(self) -> str:
        return f"{self.name} (owner {self.owner})" if self.owner else f"{self.name} (no owner)"


@dataclass(frozen=True, slots=True)
class Broken:
    """One change that readers rely on not being made."""

    change: Change
    readers: tuple[Consumer, ...]


def consumers(graph: Graph, name: str) -> tuple[Consumer, ...]:
    return tuple(_consumer(graph[reader]) for reader in graph.readers(name))


def broken(graph: Graph, table: Table, old: Contract, new: Contract) -> tuple[Broken, ...]:
    """The breaking changes from one version to the next, each with the tables that would notice."""
    readers = consumers(graph, table.name)
    return tuple(
        Broken(change, tuple(one for one in readers if one.relies_on(change, old)))
        for change in changes(old, new)
        if change.severity == "breaking"
    )


def refusal(graph: Graph, table: Table, new: Contract, old: Contract) -> ContractError | None:
    """Why the table must not be kept under its new contract yet: each field, its readers, the way to go."""
    found = [one for one in broken(graph, table, old, new) if one.readers]
    if not found:
        return None
    return ContractError(
        f"{table.name} has readers that contract {new.title} would break",
        why="; ".join(f"{one.change.path}: {one.change.what}; {_read_by(one)}" for one in found),
        fix=_way(found[0].change, table),
        problems=tuple(found),
    )


def promise_findings(project: Project, look: Look) -> list[Finding]:
    """What `lode plan` says of each contract that is not the one its table is kept under."""
    found: list[Finding] = []
    for table in project.graph:
        contract = contract_of(table)
        if contract is None:
            continue
        try:
            stored = promised(look(table.name) or {})
        except LodeError as unread:
            return [_unread(table, unread)]
        if stored is not None:
            found += _findings(project.graph, table, stored, contract)
    return sorted(found, key=lambda finding: finding.severity)


def stored_properties(config: Config) -> Look:
    """The stored tables as the catalog shows them, without a JVM."""
    from lodestream.tables.inspect import Inspector

    inspector = Inspector(config)

    def look(name: str) -> Mapping[str, str] | None:
        view = inspector.look(name)
        return None if view is None else dict(view.table.properties)

    return look


def accept_contracts(project: Project, names: Sequence[str]) -> list[str]:
    """Record each table's declared contract as the one in force: its readers have agreed to what it changes."""
    from lodestream.tables.inspect import Inspector

    inspector, said = Inspector(project.config), []
    for table in project.graph.select(names) if names else ():
        contract, view = contract_of(table), inspector.look(table.name)
        if contract is None or view is None:
            missing = "it has no contract" if contract is None else "it does not exist yet"
            raise DeclarationError(f"{table.name}: there is no contract to accept", why=missing)
        accept(view, contract)
        said.append(f"{table.name} is kept under {contract.title} from now on")
    return said


def _findings(graph: Graph, table: Table, old: Contract, new: Contract) -> Iterator[Finding]:
    for one in broken(graph, table, old, new):
        yield Finding(
            "error" if one.readers else "warning",
            table.name,
            f"{table.name}: {one.change.path} {one.change.what}",
            f"{_read_by(one)}; the table is kept under {old.title}, declared is {new.title}",
            _way(one.change, table),
            table.location,
        )
    least = next_version(old, new)
    if old != new and _numbers(new.version) < _numbers(least):
        yield Finding(
            "warning",
            table.name,
            f"{table.name}: its contract changed and is still version {new.version}",
            "; ".join(f"{change.path} {change.what}" for change in changes(old, new)) or "its text differs",
            f"raise the version to {least} at least, so that dead letters and readers tell the two apart",
            table.location,
        )


def _read_by(one: Broken) -> str:
    if not one.readers:
        return "no table of this pipeline reads it"
    return f"read by {', '.join(map(str, one.readers))}"


def _way(change: Change, table: Table) -> str:
    return f"{change.fix or _TWO_STEPS}; if its readers agree to it as it is: lode plan --accept {table.name}"


def _unread(table: Table, error: LodeError) -> Finding:
    message = "contracts could not be held against the stored tables"
    return Finding("warning", table.name, message, error.what, error.fix or "see `lode doctor`", table.location)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def _consumer(table: Table) -> Consumer:
    contract = contract_of(table)
    owner = table.owner or (contract.owner if contract else None)
    return Consumer(table.name, owner, _columns(table))


def _columns(table: Table) -> frozenset[str] | None:
    """The columns that a query names, whichever of its inputs they come from: too many is safe, too few is not."""
    if table.sql is None:
        return None
    tree = read_query(table.sql, table.location)
    if tree is None or any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return None
    return frozenset(column.name.lower() for column in tree.find_all(exp.Column))
