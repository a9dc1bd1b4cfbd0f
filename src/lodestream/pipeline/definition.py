"""What a table's stored rows were made by, in parts that can be compared one by one. No Spark.

A Gold snapshot carries the parts as a note: rows of another definition must not be added to, and `lode plan` says
which part has changed before a run rebuilds the table.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping

from sqlglot import exp

from lodestream.errors import DeclarationError
from lodestream.pipeline.location import Location
from lodestream.pipeline.sql import parse_query
from lodestream.pipeline.table import Table

QUERY, OPTIONS, WAY, INPUT = "query", "options", "way", "input "


def definition_parts(
    table: Table, inputs: Mapping[str, Mapping[str, str]], lookups: tuple[str, ...] = ()
) -> dict[str, str]:
    """The query or function, the options that rows depend on, and what it reads of each input.

    `inputs` maps the full name of each input to its columns and their Spark types.
    """
    used = used_names(table)
    parts = {QUERY: _digest(source_text(table)), OPTIONS: _digest([table.strategy, table.keys, sorted(lookups)])}
    for name, columns in inputs.items():
        read = [(one, _spelt(kind)) for one, kind in columns.items() if used is None or one.lower() in used]
        parts[f"{INPUT}{name}"] = _digest(read)
    return parts


def definition_note(parts: Mapping[str, str], way: str) -> str:
    """The parts as one text for a snapshot. `way` says how the rows are stored: it changes with our own version too."""
    return json.dumps({**parts, WAY: _digest(way)}, separators=(",", ":"), sort_keys=True)


def read_note(note: str | None) -> dict[str, str] | None:
    """The parts that a snapshot carries; None when it carries none that can be told apart."""
    try:
        found = json.loads(note or "")
    except ValueError:
        return None
    return (
        {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) and QUERY in found else None
    )


def changed_parts(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """What differs, in words; how rows are stored is left out, because only a run can tell it."""
    if before.get(QUERY) != now.get(QUERY):
        yield "its query or function changed"
    if before.get(OPTIONS) != now.get(OPTIONS):
        yield "its strategy, keys or lookups changed"
    for key in sorted({*before, *now}):
        if key.startswith(INPUT) and before.get(key) != now.get(key):
            name = key.removeprefix(INPUT)
            if key not in before:
                yield f"it reads {name} now"
            elif key not in now:
                yield f"it reads {name} no more"
            else:
                yield f"columns of {name} that it reads changed"


def code_of(table: Table) -> str:
    """What makes the rows of a Silver table, as far as its own text shows."""
    filters = [(one.name, one.sql) for one in table.filters]
    return _digest([source_text(table), repr(table.decode), filters, table.delete_when])


def source_text(table: Table) -> str:
    """A query is its text, a function its source; one that has none is known by its place."""
    if table.sql is not None:
        return table.sql
    try:
        return inspect.getsource(inspect.unwrap(table.function)) if table.function else str(table.location)
    except (OSError, TypeError):
        return str(table.location)


def used_names(table: Table) -> frozenset[str] | None:
    """Every name in a query, in lower case: among them are the columns it reads. None when it may read all of them."""
    if table.sql is None:
        return None
    try:
        tree = parse_query(table.sql, Location("", 1))
    except DeclarationError:
        return None
    whole = any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))
    natural = any(join.args.get("method") for join in tree.find_all(exp.Join))
    by_name = any(one.args.get("by_name") for one in tree.find_all(exp.SetOperation))
    if whole or natural or by_name or tree.find(exp.Pivot, exp.QueryTransform):
        return None
    return frozenset(one.name.lower() for one in tree.find_all(exp.Identifier))


def _spelt(kind: str) -> str:
    return kind.lower().replace(" ", "")


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
