"""What a table's stored rows were made by, in parts that can be compared one by one. No Spark.

A Gold snapshot carries its definition as one fingerprint, which only Spark can make: it has the session's settings and
the way that was chosen. The parts beside it say what of the declaration changed, so that `lode plan` can tell before a
run that a table will be rebuilt, and why.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from lodestream.pipeline.gold.definition import fingerprint, read_columns
from lodestream.pipeline.gold.plan import InputInfo
from lodestream.pipeline.reach import source_fingerprint
from lodestream.pipeline.table import Table

QUERY, OPTIONS, INPUT = "query", "options", "input "


def definition_parts(table: Table, infos: Iterable[InputInfo]) -> dict[str, str]:
    """The query or function, the options that rows depend on, and what it reads of each input.

    The columns of `infos` are those of the stored inputs as readers see them, with Spark's names for their types.
    """
    infos = tuple(infos)
    lookups = sorted(info.name for info in infos if info.lookup)
    options = fingerprint([table.strategy or "", ",".join(table.keys), ",".join(lookups)])
    return {
        QUERY: fingerprint([made_by(table)]),
        OPTIONS: options,
        **{INPUT + one.name: _read(table, one) for one in infos},
    }


def parts_note(parts: Mapping[str, str]) -> str:
    """The parts as one text, for the notes of a snapshot."""
    return json.dumps(parts, separators=(",", ":"), sort_keys=True)


def read_parts(note: str | None) -> dict[str, str] | None:
    """The parts that a snapshot carries; None when it carries none, as one of an earlier version."""
    try:
        found = json.loads(note or "")
    except ValueError:
        return None
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else None


def changed_parts(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """What differs, in words."""
    if before.get(QUERY) != now.get(QUERY):
        yield "its query or function changed"
    if before.get(OPTIONS) != now.get(OPTIONS):
        yield "its strategy, keys or lookups changed"
    for key in sorted({*before, *now}):
        name = key.removeprefix(INPUT)
        if not key.startswith(INPUT) or before.get(key) == now.get(key):
            continue
        if key in before and key in now:
            yield f"columns of {name} that it reads changed"
        else:
            yield f"it reads {name} {'no more' if key in before else 'now'}"


def code_of(table: Table) -> str:
    """What makes the rows of a Silver table: its code, how it is decoded, which rows it keeps."""
    filters = [f"{one.name}={one.sql}" for one in table.filters]
    return fingerprint([made_by(table), repr(table.decode), table.delete_when or "", *filters])


def made_by(table: Table) -> str:
    """A query is its text, a function its own and that of the project's code it reaches, both as they were loaded.

    Files may have been edited since: what is recorded with rows must be the code that made them.
    """
    if table.sql is not None:
        return table.sql
    return with_code(table).code or str(table.location)


def with_code(table: Table) -> Table:
    """The table with the fingerprint of its function, taken from the files now; one that has it keeps it."""
    if table.function is None or table.code is not None:
        return table
    return replace(table, code=source_fingerprint(table.function))


def _read(table: Table, info: InputInfo) -> str:
    """A function may read every column."""
    columns = {name: str(kind) for name, kind in info.columns.items()}
    read = read_columns(table.sql, [info]) if table.sql is not None else columns
    return fingerprint(f"{name} {kind.lower().replace(' ', '')}" for name, kind in sorted(read.items()))
