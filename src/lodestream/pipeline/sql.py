"""Reading Spark SQL: which tables a query reads, whether it aggregates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from lodestream.pipeline.gold.parsing import UnreadableError, parse
from lodestream.pipeline.gold.statement import mentions
from lodestream.pipeline.location import Location, declaration_error

DIALECT = "spark"


@dataclass(frozen=True, slots=True)
class SqlInput:
    """A table that a query reads, and the line of the query (from 1) that names it."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Something that folds rows together."""

    text: str
    line: int | None


def parse_query(text: str, location: Location, *, inline: bool = False) -> exp.Query:
    """The one query in the text. Errors point at its line in its file, or at the call when it stands in Python."""
    try:
        statements = parse(text).trees
    except UnreadableError as error:
        line, why = explain(error)
        where = location if inline else Location(location.file, line)
        raise declaration_error(where, "the SQL does not parse", why=why, fix=f"correct line {line} of it") from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        found = ", ".join(one.key.upper() for one in statements) or "nothing"
        raise declaration_error(
            location,
            "the SQL is not one query",
            why=f"a table is defined by a single SELECT; found: {found}",
            fix="write one SELECT (WITH is fine); Lodestream creates and writes the table",
        )
    return statements[0]


def read_query(text: str, location: Location, *, inline: bool = False) -> exp.Query | None:
    """The query, or None when it names tables and only Spark can read the rest."""
    try:
        parse(text)
    except UnreadableError:
        if mentions(text):
            return None
    return parse_query(text, location, inline=inline)


def mentioned_inputs(text: str) -> tuple[SqlInput, ...]:
    """The tables of a query that only Spark can read."""
    found = {name: text.count("\n", 0, place) + 1 for name, (place, _, _) in reversed(mentions(text))}
    return tuple(SqlInput(name, line) for name, line in sorted(found.items(), key=lambda pair: pair[1]))


def check_condition(text: object, location: Location, label: str) -> str:
    """The text, if it is a boolean SQL expression as far as its grammar tells."""
    try:
        if not isinstance(text, str):
            raise TypeError(f"it is a {type(text).__name__}, not text")
        sqlglot.parse_one(text, dialect=DIALECT, into=exp.Condition)
    except (SqlglotError, TypeError) as error:
        why = str(error).splitlines()[0] if isinstance(error, TypeError) else f"it reads: {text}"
        raise declaration_error(
            location, f"{label} is no SQL expression", why=why, fix='write a condition, such as "fare_amount >= 0"'
        ) from error
    return text


def query_inputs(query: exp.Query) -> tuple[SqlInput, ...]:
    """The tables a query reads, in the order they appear; names of CTEs and table functions are not tables."""
    found: dict[str, int] = {}
    for table in _tables(query):
        line = table.this.meta.get("line", 1)
        name = ".".join(part.name for part in table.parts[-2:]).lower()
        found[name] = min(line, found.get(name, line))
    return tuple(SqlInput(name, line) for name, line in sorted(found.items(), key=lambda pair: pair[1]))


def query_aggregates(query: exp.Query) -> list[Aggregate]:
    """GROUP BY clauses and aggregate calls; a call over a window keeps its rows and is none."""
    return [
        Aggregate(node.sql(dialect=DIALECT, normalize_functions=False), _line(node))
        for node in query.find_all(exp.Group, exp.AggFunc)
        if not isinstance(node.parent, exp.Window | exp.IgnoreNulls | exp.RespectNulls | exp.Filter)
        or not node.find_ancestor(exp.Window)
    ]


def query_outputs(query: exp.Query) -> list[tuple[str, int | None]]:
    """The columns that a query names for its result, each with its line. A star names none."""
    if isinstance(query, exp.SetOperation):
        return query_outputs(query.left)
    selected = query.selects if isinstance(query, exp.Select) else []
    return [(one.alias_or_name, _line(one)) for one in selected if not one.is_star]


def result_names(query: Any, named: Mapping[str, Any] | None = None) -> list[tuple[str, int | None]]:
    """The columns of a query's result with their lines, also those that a star takes from inside the query."""
    if isinstance(query, exp.Subquery):
        return result_names(query.unnest(), named)
    if isinstance(query, exp.SetOperation):
        return result_names(query.left, {**(named or {}), **_ctes(query)})
    named = {**(named or {}), **_ctes(query)}
    found: list[tuple[str, int | None]] = []
    for one in query.selects if isinstance(query, exp.Select) else []:
        if one.is_star:
            found += _behind_star(query, one, named)
        else:
            found.append((one.alias_or_name, _line(one)))
    return found


def _behind_star(query: exp.Query, star: Any, named: Mapping[str, Any]) -> Iterator[tuple[str, int | None]]:
    of = star.table.lower() if isinstance(star, exp.Column) else ""
    whole = star.find(exp.Star)
    without = {one.name.lower() for one in whole.args.get("except_") or ()} if whole else set()
    for part in [query.args.get("from_"), *(query.args.get("joins") or [])]:
        source = part.this if part is not None else None
        if source is None or (of and source.alias_or_name.lower() != of):
            continue
        inner = source.this if isinstance(source, exp.Subquery) else None
        if isinstance(source, exp.Table) and not source.db:
            inner = named.get(source.name.lower())
            named = {name: one for name, one in named.items() if one is not inner}  # one that reads itself ends
        if inner is not None:
            yield from (one for one in result_names(inner, named) if one[0].lower() not in without)


def _ctes(query: Any) -> dict[str, Any]:
    return {one.alias.lower(): one.this for one in query.ctes}


def _tables(query: exp.Query) -> Iterator[Any]:
    for scope in traverse_scope(query):
        for source in scope.sources.values():
            if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
                yield source


def _line(node: Any) -> int | None:
    return next((one.meta["line"] for one in node.walk() if "line" in one.meta), None)


def explain(unreadable: UnreadableError) -> tuple[int, str]:
    """The line that stopped the parser, and what it says of it."""
    error = unreadable.__cause__
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        near = f"{first['start_context'][-30:]}{first['highlight']}".split("\n")[-1].strip()
        # The parser names its own classes; the place is what helps.
        said = first["description"].split(" for <class")[0].split(" but got <Token")[0]
        said = said.replace("'this' missing", "an expression is missing")
        return int(first["line"]), f"{said}, at: {near}"
    return 1, str(unreadable)
