"""What `lode plan` finds wrong without Java: names, functions, types and options held against what is known.

Each finding is something that a run would stop on, or lose every row to. What is not certain is left to `--deep`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from lodestream.config import nearest
from lodestream.contracts import Contract, Field
from lodestream.contracts.types import parse_type
from lodestream.names import CARRIED
from lodestream.pipeline import Finding, Location, Table, parse_partition
from lodestream.pipeline.function_shape import DEDUPLICATES, mentions, never_names
from lodestream.pipeline.partitioning import misfit
from lodestream.pipeline.query_check import Columns, Problem, check_expression, check_query, dropping_line
from lodestream.pipeline.query_folds import fold_of
from lodestream.planning.keyed import declared_keys, keyed, leaders_of, silver_way
from lodestream.planning.known_columns import KnownTable, Stored, driving, judges, known_tables
from lodestream.planning.project import Project

# Types that Spark reads and contracts do not name.
_SPARK_ONLY = ("interval", "void", "time", "timestamp_ltz", "geometry", "geography", "collate")
_REGISTERS = re.compile(r"udf\.register|register(?:Java)?Function|CREATE\b[\w\s]*\bFUNCTION\b", re.IGNORECASE)
_ONE_BATCH = (
    "it sees the rows of one batch alone, so a copy that comes later stays; "
    "and in a batch each event is accounted for, so none is removed there"
)
_ADD_DECODE = 'say how the bytes are read: decode=Json("id bigint, ...")'
_BY_KEYS = 'to keep the first row of each key, whenever a copy comes: keys="id"'


def static_findings(project: Project, stored: Stored | None = None, judged: Collection[str] = ()) -> list[Finding]:
    """Every mistake that declarations, contracts and queries show, in the order of the graph.

    The queries of the tables in `judged` are left out: Spark itself has read them.
    """
    known = known_tables(project, stored)
    found: list[Finding] = []
    for table in project.graph:
        about = known[table.name]
        checks = (_decoding, _schema, _options, _selected, _conditions, _fulfilled, _dropped, _folded, _refused)
        for check in checks if table.name in judged else (_query, *checks):
            found += check(project, table, about)
    return found


def location_of(table: Table, line: int | None) -> Location:
    """A line of the table's query; for a query that stands in Python, the declaration."""
    return Location(str(table.sql_path), line or 1) if table.sql_path else table.location


def query_finding(table: Table, one: Problem) -> Finding:
    where = f" (line {one.line} of the query)" if not table.sql_path and one.line and one.line > 1 else ""
    return Finding(
        one.severity, table.name, f"{table.name}: {one.what}{where}", one.why, one.fix, location_of(table, one.line)
    )


def has_extensions(project: Project) -> bool:
    """Whether Spark is set up with functions that are not its own."""
    words = ("extensions", "jars", "packages", "catalog.spark_catalog", "hive")
    return any(word in key.lower() for key in project.config.spark.conf for word in words) or _registers(project)


def _registers(project: Project) -> bool:
    """Whether code of the project gives Spark functions of its own, as far as the files beside the pipeline show."""
    folder = Path(project.pipeline.location.file).parent
    for file in (*folder.glob("*.py"), *folder.glob("[!.]*/*.py")):
        try:
            if _REGISTERS.search(file.read_text(encoding="utf-8")):
                return True
        except (OSError, UnicodeDecodeError):
            continue
    return False


def _error(table: Table, what: str, why: str, fix: str, location: Location | None = None) -> Finding:
    return Finding("error", table.name, f"{table.name}: {what}", why, fix, location or table.location)


def _decoding(_project: Project, table: Table, about: KnownTable) -> Iterator[Finding]:
    error = about.undecodable
    if error is not None:
        why, _, meant = (error.why or "").partition(": did you mean ")
        yield _error(table, error.what, why, f"did you mean {meant}" if meant else error.fix or "")


def _schema(_project: Project, table: Table, _about: KnownTable) -> Iterator[Finding]:
    """A misspelt type in the schema of a source; Spark knows more types than we do, so only a near miss counts."""
    schema = table.source.schema_text if table.source else None
    if not schema:
        return
    try:
        parse_type(f"struct<{schema}>")
    except ValueError as error:
        why, _, meant = str(error).partition(": did you mean ")
        what = f"its schema cannot be read: {schema[:60]!r}"
        if meant and not any(f"'{word}'" in why for word in _SPARK_ONLY):
            yield _error(table, what, why, f"did you mean {meant}")
        elif why.startswith("decimal("):
            yield _error(table, what, why, "a decimal has at most 38 digits: decimal(38,2)")


def _query(project: Project, table: Table, about: KnownTable) -> Iterator[Finding]:
    if table.sql is None:
        return
    for one in check_query(table.sql, about.seen, extended=has_extensions(project)):
        yield query_finding(table, _undecoded(project, table, one))


def _undecoded(project: Project, table: Table, one: Problem) -> Problem:
    """A column that raw bytes do not have most likely waits for `decode=`."""
    if not _sees_bytes(project, table) or "is no column of" not in one.what:
        return one
    why = f"{table.name} has no decode=, so it sees the raw bytes: {one.why}"
    return Problem(one.what, why, _ADD_DECODE, one.line, one.severity)


def _sees_bytes(project: Project, table: Table) -> bool:
    """A Silver table over captured events that nothing decodes."""
    name = driving(project, table) if table.tier == "silver" and table.decode is None else None
    return name is not None and _captures_bytes(project.graph[name])


def _captures_bytes(table: Table) -> bool:
    return table.tier == "bronze" and table.source is not None and table.source.raw


def _options(project: Project, table: Table, about: KnownTable) -> Iterator[Finding]:
    """`keys` and `partition_by` name columns of the table, `sequence_by` those that its query or function gives."""
    keys = declared_keys(table) if table.tier != "bronze" else ()
    partitions = tuple(parse_partition(one).column.partition(".")[0] for one in table.partition_by)
    stored = about.columns
    if table.tier == "gold" and table.function is not None and about.contract is None:
        stored = None
    derived = table.tier == "silver" and not table.is_reference and leaders_of(project.graph, table)
    wrong: list[Finding] = []
    if not derived or about.contract is not None:
        wrong += _missing(table, "keys", keys, stored)
    wrong += _missing(table, "partition_by", partitions, stored)
    made = about.columns if table.is_reference else about.made
    wrong += _missing(table, "sequence_by", table.sequence_by, made)
    if wrong and about.contract is None and _sees_bytes(project, table):
        why = f"it sees the raw bytes of {driving(project, table)}: {wrong[0].why}"
        yield _error(table, f"{wrong[0].message.partition(': ')[2]}: decode= is missing", why, _ADD_DECODE)
        return
    yield from wrong
    yield from _misfitting(table, stored)
    yield from _unfollowed(project, table, about)


def _misfitting(table: Table, columns: Columns | None) -> Iterator[Finding]:
    """`days(zone)` of a number."""
    kinds = {name.lower(): kind for name, kind in (columns or {}).items()}
    for one in map(parse_partition, table.partition_by):
        kind = kinds.get(one.column.lower())
        why = misfit(one, kind) if kind is not None else None
        if why is not None:
            fix = f"partition by the column as it is, {one.column}, or by a moment: days(...)"
            yield _error(table, f"partition_by cannot be {one}", why, fix)


def _missing(table: Table, option: str, names: Sequence[str], columns: Columns | None) -> Iterator[Finding]:
    if columns is None:
        return
    held = {one.lower() for one in columns}
    for name in names:
        if name.lower() not in held:
            yield missing_column(table, option, name, columns)


def missing_column(table: Table, option: str, name: str, columns: Columns | Sequence[str]) -> Finding:
    shown = [one for one in columns if one != CARRIED]
    close = nearest(name, shown)
    fix = f"did you mean {close}?" if close else f"name a column of {table.name} in {option}="
    listed = ", ".join(shown[:20]) + (", ..." if len(shown) > 20 else "")
    return _error(table, f'{option} names "{name}", which it does not have', f"its columns are {listed}", fix)


def _unfollowed(project: Project, table: Table, about: KnownTable) -> Iterator[Finding]:
    """Keys of a Gold function that its inputs do not carry: it works, by recomputing everything each time."""
    if table.tier != "gold" or table.function is None or not table.keys:
        return
    unknown = list(_keys_of_nothing(table, about))
    yield from unknown
    for name in () if unknown or table.strategy == "full" else project.graph.streams(table.name):
        columns = about.seen.get(name)
        lost = [key for key in table.keys if columns is not None and key not in columns]
        if lost:
            close = nearest(lost[0], columns or ())
            yield Finding(
                "warning",
                table.name,
                f"{table.name} has the key {', '.join(lost)}, which {name} does not carry",
                "the rows of a change cannot be found by it, so the whole table is recomputed each time",
                f"did you mean {close}?" if close else f'give {name} the column, or say strategy="full"',
                table.location,
            )


def _keys_of_nothing(table: Table, about: KnownTable) -> Iterator[Finding]:
    """Keys that neither an input has nor the function gives a name to: no row could have them."""
    columns = {name for one in about.seen.values() for name in one or ()}
    if about.contract is not None or table.function is None or any(one is None for one in about.seen.values()):
        return
    for key in table.keys:
        if key.lower() not in {one.lower() for one in columns} and never_names(table.function, key):
            yield missing_column(table, "keys", key, sorted(columns))


def _conditions(project: Project, table: Table, about: KnownTable) -> Iterator[Finding]:
    judged = _judged(about)
    given = [(f'filter "{one.name}"', one.sql, judged) for one in table.filters]
    given += [(f'expectation "{one.name}"', one.sql, judged) for one in table.expectations]
    if table.delete_when:
        given.append(("delete_when", table.delete_when, about.made))
    for label, sql, columns in given:
        for one in check_expression(sql, columns, extended=has_extensions(project)) if columns is not None else ():
            message = f"{table.name}: {label}: {one.what}"
            yield Finding(one.severity, table.name, message, one.why, one.fix, table.location)


def _judged(about: KnownTable) -> Columns | None:
    """What filters and expectations see: the contract's columns, and every other one that was returned."""
    if about.contract is None or about.columns is None:
        return about.columns
    return {**about.made, **about.columns} if about.made is not None else None


def _selected(project: Project, table: Table, about: KnownTable) -> Iterator[Finding]:
    """A function that selects what its input does not have; over raw bytes, what a decoder would give."""
    if about.shape is None or not about.shape.unknown:
        return
    name = driving(project, table)
    raw = table.decode is None and name is not None and _captures_bytes(project.graph[name])
    columns = sorted(one for one in (about.seen.get(name) if name else None) or ())
    close = nearest(about.shape.unknown, columns)
    fix = _ADD_DECODE if raw else f"did you mean {close}?" if close else "name a column that it has"
    why = f"{name} has {', '.join(columns)}"
    yield _error(table, f"its function selects {about.shape.unknown}, which nothing gives", why, fix)


def _fulfilled(project: Project, table: Table, about: KnownTable) -> Iterator[Finding]:
    """What the contract asks of the query or function, and does not get."""
    contract = about.contract
    if contract is None or table.is_reference:
        return
    if table.tier == "gold":
        yield from _gold_contract(table, about, contract)
    elif table.tier == "silver":
        yield from _silver_contract(project, table, about, contract)


def _gold_contract(table: Table, about: KnownTable, contract: Contract) -> Iterator[Finding]:
    if about.made is None:
        return
    made, asked = {one.lower() for one in about.made}, {one.name.lower() for one in contract}
    for one in contract:
        if one.name.lower() not in made:
            close = nearest(one.name, [name for name in about.made if name.lower() not in asked])
            fix = f"did you mean {close}? Write AS {one.name}" if close else f"add the column {one.name} to the query"
            why = f"contract {contract.title} promises it to readers"
            yield _error(table, f"the query gives no column {one.name}", why, fix, location_of(table, 1))
    for name in about.made:
        if name.lower() not in asked:
            why = f"contract {contract.title} does not name it"
            fix = "take it out of the query, or add it to the contract"
            yield _error(table, f"the query gives {name}, which is not promised", why, fix, location_of(table, 1))


def _silver_contract(project: Project, table: Table, about: KnownTable, contract: Contract) -> Iterator[Finding]:
    name = driving(project, table)
    raw = table.decode is None and name is not None and _captures_bytes(project.graph[name])
    add = "say how the bytes are read: decode=Json(), whose columns come from the contract"
    if about.made is not None:
        if CARRIED not in about.made and judges(project, table) and table.function is not None:
            yield _error(
                table,
                f"the function drops the column {CARRIED}",
                "it holds the raw row: without it no row that is refused could be kept, counted and replayed",
                f'select it too, as in select("id", "{CARRIED}"), or begin with select("*", ...)',
            )
        for one in contract:
            if one.required and not _sources(one, about.made):
                close = nearest(one.name, [made for made in about.made if made != CARRIED])
                what = f"nothing gives its required column {one.name}"
                why = f"every row would be a dead letter: {one.name} is null"
                if raw:
                    yield _error(table, what, f"{why}; without decode= the function sees raw bytes", add)
                    return
                fix = f"did you mean {close}?" if close else f"give it in the {'query' if table.sql else 'function'}"
                yield _error(table, what, why, fix)
    elif raw and table.function is not None and not mentions(table.function, "value"):
        yield Finding(
            "warning",
            table.name,
            f"{table.name} has a contract and no decode=",
            "its function sees raw bytes and does not seem to read them",
            add,
            table.location,
        )


def _sources(one: Field, made: Columns) -> bool:
    wanted = {one.name, one.source_name, *one.aliases}
    lower = {name.lower() for name in wanted}
    return any(name in wanted or (one.reading.any_case and name.lower() in lower) for name in made)


def _dropped(project: Project, table: Table, about: KnownTable) -> Iterator[Finding]:
    """Rows that a WHERE drops are accounted for nowhere, and the batch is refused."""
    if table.tier != "silver" or table.is_reference or table.allow_no_rows or not _accounts(project, table):
        return
    location = None
    if table.sql is not None:
        line = dropping_line(table.sql, driving(project, table) or "")
        location = location_of(table, line) if line else None
    elif about.shape is not None and about.shape.dropped_at:
        location = Location(table.location.file, about.shape.dropped_at)
        if about.shape.dropped_by in DEDUPLICATES:
            yield _error(table, f"its function calls {about.shape.dropped_by}()", _ONE_BATCH, _BY_KEYS, location)
            return
    if location is not None:
        yield _error(
            table,
            "it drops rows that nothing accounts for",
            "every input row is published, a dead letter, a duplicate or counted by a declared filter; "
            "a batch with a row that is dropped in the code is refused",
            "declare the condition instead: filters={'name': 'rows to keep'}",
            location,
        )


def _folded(project: Project, table: Table, _about: KnownTable) -> Iterator[Finding]:
    """DISTINCT, LIMIT and UNION over the rows of a batch: not what they say of the table."""
    name = driving(project, table) if table.tier == "silver" and table.sql is not None else None
    found = fold_of(table.sql or "", name) if name is not None and not project.graph[name].is_reference else None
    if found is None:
        return
    words, line = found
    what = f"{words} in a Silver query"
    if words == "SELECT DISTINCT":
        yield _error(table, what, _ONE_BATCH, _BY_KEYS, location_of(table, line))
    elif words == "UNION":
        fix = f"write UNION ALL; {_BY_KEYS}"
        yield _error(table, f"{what} removes duplicates", _ONE_BATCH, fix, location_of(table, line))
    else:
        why = "a query sees the rows of one batch, so that what it takes would depend on how they arrive"
        fix = (
            "choose rows by what they hold: filters={'name': 'rows to keep'}; the first of many belong in a Gold table"
        )
        yield _error(table, what, why, fix, location_of(table, line))


def _accounts(project: Project, table: Table) -> bool:
    followed = project.graph.streams(table.name)
    return table.decode is not None or (len(followed) == 1 and not keyed(project.graph, followed[0]))


def _refused(project: Project, table: Table, _about: KnownTable) -> Iterator[Finding]:
    """A Silver table whose way of being kept does not fit what it follows."""
    if table.tier != "silver" or table.is_reference:
        return
    way, why, fix = silver_way(project.graph, table)
    if way == "refused":
        yield _error(table, "it cannot be kept as declared", why, fix or "")
