"""How each Gold table would be kept, told without Spark: from contracts, declared schemas and the catalog."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lodestream.errors import CatalogUnavailable, DeclarationError
from lodestream.names import in_files_only
from lodestream.pipeline import Finding, Location, Table, parse_partition
from lodestream.pipeline.gold.choose import choose
from lodestream.pipeline.gold.plan import InputInfo
from lodestream.pipeline.gold.statement import refuse_catalogs
from lodestream.planning.known_columns import HISTORY, KnownTable, known_tables
from lodestream.planning.project import Project, contract_of

Way = tuple[str, str, str | None]
Columns = Mapping[str, str | None]
REFUSED = "refused"
_SPARK_NAMES = {"long": "bigint", "timestamptz": "timestamp", "timestamp": "timestamp_ntz", "uuid": "string"}


def gold_way(project: Project, table: Table) -> Way:
    """The strategy, its reason, and what would make it cheaper."""
    return _function(project, table) if table.sql is None else _query(project, table)


def forced_findings(project: Project) -> list[Finding]:
    """A strategy that was asked for and cannot be proven is an error of the declaration."""
    found = []
    for table in project.graph:
        if table.tier == "gold" and table.strategy is not None:
            way, why, fix = gold_way(project, table)
            if way == REFUSED:
                what = f"{table.name} asks for strategy {table.strategy!r}, which cannot be proven to equal a recompute"
                found.append(Finding("error", table.name, what, why, fix or "leave it to Lodestream", table.location))
    return found


def unkept_findings(project: Project) -> list[Finding]:
    """A query that no strategy can keep, a full refresh neither: such as two columns of one name."""
    found = []
    for table in project.graph:
        if table.tier == "gold" and table.strategy is None:
            way, why, fix = gold_way(project, table)
            if way == REFUSED:
                location = Location(str(table.sql_path), 1) if table.sql_path else table.location
                what = f"{table.name} cannot be kept as declared"
                found.append(Finding("error", table.name, what, why, fix or "correct the query", location))
    return found


def refuse_unprovable(project: Project) -> None:
    for one in forced_findings(project):
        raise DeclarationError(one.message, why=one.why, fix=one.fix, file=one.location.file, line=one.location.line)


def _function(project: Project, table: Table) -> Way:
    if table.strategy == "delta":
        return REFUSED, "a function does not show how a change adds up", "write it as a query, or take strategy= away"
    if table.strategy == "full" or not table.keys:
        return "full", "recomputed as a whole, because a function does not show which rows a change touches", None
    without = [name for name in project.graph.streams(table.name) if not _carries(project, name, table.keys)]
    if without:
        why = f"{', '.join(without)} does not carry {', '.join(table.keys)}"
        if table.strategy == "affected":
            return REFUSED, why, 'give keys= that every followed input carries, or strategy="full"'
        return "full", f"recomputed as a whole, because {why}", None
    return "affected", f"the rows with the {', '.join(table.keys)} of a change are recomputed, as declared", None


def _carries(project: Project, name: str, keys: Sequence[str]) -> bool:
    columns = known_columns(project, project.graph[name])
    return not columns or set(keys) <= set(columns)


def _query(project: Project, table: Table) -> Way:
    graph = project.graph
    infos = [_info(project, name, name in graph.lookups(table.name)) for name in graph.inputs(table.name)]
    unknown = [info.name for info in infos if not info.columns]
    if unknown and table.strategy != "full":
        names = ", ".join(unknown)
        return "undecided", f"decided at its first batch, when the columns of {names} are known", None
    try:
        refuse_catalogs(table.sql or "", project.config.catalog.name)
        plan = choose(table.sql or "", infos, table.strategy)
    except DeclarationError as error:
        return (
            REFUSED,
            f"{error.what}: {error.why}" if table.strategy is None and error.why else error.why or error.what,
            error.fix,
        )
    return plan.strategy, plan.reason, plan.cheaper


def _info(project: Project, name: str, lookup: bool) -> InputInfo:
    table = project.graph[name]
    contract = contract_of(table)
    keys = table.keys or (contract.keys if contract else ())
    partitions = tuple(one.column for one in map(parse_partition, table.partition_by))
    return InputInfo(name, known_columns(project, table), keys, partitions, lookup=lookup)


def known_columns(project: Project, table: Table) -> Columns:
    """Of the contract, else of the declared schema, else of the table itself, else of what it will be made by."""
    contract = contract_of(table)
    of_versions = HISTORY if table.history else {}
    if contract is not None:
        return {**{field.name: field.type for field in contract}, **of_versions}
    if table.reference is not None and table.reference.schema:
        return {**_from_ddl(table.reference.schema), **of_versions}
    return _from_catalog(project, table.name) or _as_declared(project, table.name)


def _as_declared(project: Project, name: str) -> Columns:
    """What decoders and queries tell before anything ran, when they tell all of it."""
    known = _known(project)[name].columns
    return known if known is not None and all(known.values()) else {}


def _known(project: Project) -> Mapping[str, KnownTable]:
    """Of one project once: each Gold table asks, and the answer is of all tables."""
    if not _asked or _asked[0][0] is not project:
        _asked[:] = [(project, known_tables(project))]
    return _asked[0][1]


_asked: list[tuple[Project, Mapping[str, KnownTable]]] = []


def _from_ddl(ddl: str) -> Columns:
    parts = re.split(r",(?![^(<]*[)>])", ddl)
    pairs = [part.replace("`", "").split(None, 1) for part in parts]
    return {name.rstrip(":"): kind.strip().lower() for name, kind in pairs}


def _from_catalog(project: Project, name: str) -> Columns:
    from lodestream.tables.inspect import Inspector

    try:
        view = Inspector(project.config).look(name)
    except CatalogUnavailable:
        return {}  # planning needs no service: the engine looks again
    if view is None:
        return {}
    return {
        field.name: _spark_type(str(field.field_type))
        for field in view.table.schema().fields
        if not in_files_only(field.name)
    }


def _spark_type(kind: str) -> str | None:
    plain = kind.replace(" ", "")
    return None if "<" in plain else _SPARK_NAMES.get(plain, plain)
