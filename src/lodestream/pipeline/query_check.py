"""What is wrong with a query, told from its text and the columns of its inputs. No Spark.

Only what is certain is told: a name that may be resolved in a way this module does not know passes, and is left to
Spark itself (`lode plan --deep`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lodestream.config import nearest
from lodestream.errors import DeclarationError
from lodestream.names import ours
from lodestream.pipeline.gold.lookup import holders, is_star
from lodestream.pipeline.gold.spark_functions import GENERATORS, KNOWN
from lodestream.pipeline.gold.tables import table_name
from lodestream.pipeline.location import Location
from lodestream.pipeline.query_calls import GRAMMAR, called, near_function, not_numbers, unknown_functions
from lodestream.pipeline.query_groups import having_names, ungrouped
from lodestream.pipeline.query_levels import Columns, Level, Levels, Source, aliases
from lodestream.pipeline.query_problem import WORDS, Problem, line_of, unit_of_time
from lodestream.pipeline.query_syntax import misread
from lodestream.pipeline.sql import parse_query

__all__ = [
    "Columns",
    "Problem",
    "check_expression",
    "check_query",
    "dropping_line",
    "judged_names",
    "near_function",
    "result_columns",
]

_UNREAD = (exp.QueryTransform, exp.Pivot, exp.MatchRecognize, exp.Command)


@dataclass(frozen=True, slots=True)
class _Read:
    """A query that could be read: its tree, and what each SELECT sees."""

    tree: exp.Query
    levels: Levels


def check_query(text: str, tables: Mapping[str, Columns | None], *, extended: bool = False) -> list[Problem]:
    """Every problem of a query over these tables; None stands for columns that are not known.

    `extended` says that Spark is configured with functions of others.
    """
    read = _read(text, tables)
    wrong = list(misread(text))
    if read is None or wrong:
        return wrong
    found = [
        *_unknown_columns(read),
        *_unknown_using(read),
        *unknown_functions(read.tree, extended),
        *not_numbers(read.tree, read.levels),
        *ungrouped(read.tree, lambda column: _owned(read, column)),
    ]
    return sorted(found, key=lambda one: one.line or 0)


def result_columns(text: str, tables: Mapping[str, Columns | None]) -> Columns | None:
    """The columns that a query gives, or None when they cannot be told for certain."""
    read = _read(text, tables)
    return read.levels.given if read is not None else None


def check_expression(text: str, columns: Columns, *, source: str = "the row", extended: bool = False) -> list[Problem]:
    """The same for a condition over the columns of one row."""
    name = "_lode_row"
    found = check_query(f"SELECT 1 FROM {name} WHERE (\n{text}\n)", {name: columns}, extended=extended)  # noqa: S608
    return [Problem(p.what.replace(name, source), p.why.replace(name, source), p.fix, None, p.severity) for p in found]


def judged_names(text: str) -> set[str]:
    """The columns that a HAVING of the query mentions, in lower case."""
    read = _read(text, {})
    return having_names(read.tree) if read is not None else set()


def dropping_line(text: str, followed: str) -> int | None:
    """The line of a WHERE or QUALIFY that the rows of this table pass one by one; None where each may become many."""
    read = _read(text, {})
    if read is None or read.tree.find(exp.SetOperation, exp.Join, exp.Lateral, exp.Unnest, exp.Explode):
        return None
    calls = {called(node) for node in read.tree.find_all(exp.Func)}
    if any(name in GENERATORS or name not in KNOWN | GRAMMAR for name in calls if name is not None):
        return None
    ctes = {cte.alias.lower() for cte in read.tree.find_all(exp.CTE)}
    for select in read.tree.find_all(exp.Select):
        clause = select.args.get("where") or select.args.get("qualify")
        tables = {table_name(one).lower() for one in select.find_all(exp.Table)}
        if clause is None or not clause.find(exp.Column) or select.find_ancestor(exp.Where) is not None:
            continue
        if followed in tables or tables <= ctes:
            return line_of(clause) or 1
    return None


def _read(text: str, tables: Mapping[str, Columns | None]) -> _Read | None:
    try:
        tree = parse_query(text, Location("", 1))
    except DeclarationError:
        return None  # Spark may read more than we do: `misread` says so
    if tree.find(*_UNREAD) or any(one.args.get("recursive") for one in tree.find_all(exp.With)):
        return None
    return _Read(tree, Levels(tree, tables))


def _unknown_columns(read: _Read) -> Iterator[Problem]:
    found: dict[str, Problem] = {}
    for column in read.tree.find_all(exp.Column):
        problem = _unresolved(read, column)
        if problem is not None and (problem.line or 0) < (found.get(problem.what, problem).line or 0) + 1:
            found[problem.what] = problem  # named twice: the first line tells
    yield from found.values()


def _unknown_using(read: _Read) -> Iterator[Problem]:
    for level in read.levels:
        for place, join in level.merged:
            left, right = level.sources[:place], level.sources[place]
            for name in join.args["using"]:
                yield from _unmerged(name, left, right)


def _unmerged(name: exp.Expr, left: Sequence[Source], right: Source) -> Iterator[Problem]:
    """USING names a column that both sides have."""
    for sources in (left, (right,)):
        known = _names(sources)
        if known is not None and name.name.lower() not in known:
            among = " or ".join(source.title for source in sources)
            yield _problem(name, f"USING ({name.name}) names no column of {among}", name.name, known)
            return


def _names(sources: Iterable[Source]) -> set[str] | None:
    """The columns of the sources, in lower case; None when they are not known."""
    found: set[str] = set()
    for source in sources:
        if source.columns is None:
            return None
        found |= {name.lower() for name in source.columns}
    return found


def _unresolved(read: _Read, column: exp.Column) -> Problem | None:
    level = read.levels.of(column)
    if level is None or _spoken_for(column, level):
        return None
    if is_star(column):
        return _unknown_star(column, level.visible)
    names, sources = [part.name.lower() for part in column.parts], level.visible
    if not sources or holders(names, (source.readable for source in sources)):
        return None
    shown, named = column.sql("spark"), _qualifier(names, sources)
    if named is not None:
        source, place = named
        known = source.columns
        if known is None:
            return None
        return _problem(column, f"{shown} is no column of {source.title}", names[place], known)
    if any(source.columns is None for source in sources):
        return None
    known_names = [name for source in sources for name in source.columns or ()]
    among = " or ".join(source.title for source in sources)
    if len(names) > 1:
        what = f"{shown} names {column.parts[0].name}, which is neither a table of the query nor a column of {among}"
        return _unknown_alias(column, what, names, sources)
    return _problem(column, f"{shown} is no column of {among}", names[0], known_names)


def _unknown_star(column: exp.Column, sources: Sequence[Source]) -> Problem | None:
    """`x.*` where x is neither a table of the query nor a struct."""
    names = [part.name.lower() for part in column.parts[:-1]] if isinstance(column, exp.Column) else []
    known = _names(sources)
    if not names or known is None or names[0] in known:
        return None
    if any(names[0] == source.alias or ".".join(names[-2:]) == source.table for source in sources):
        return None
    what = f"{'.'.join(names)}.* names {names[0]}, which is no table of the query"
    return _unknown_alias(column, what, [*names, "*"], sources)


def _unknown_alias(column: exp.Expr, what: str, names: Sequence[str], sources: Sequence[Source]) -> Problem:
    """The tables are what was meant to be named: their columns are no help, except to tell which of them it is."""
    found = [source for source in sources if source.alias]
    having = [one.alias for one in found if names[1] in {name.lower() for name in one.columns or ()} or names[1] == "*"]
    close = having[0] if len(having) == 1 else nearest(names[0], having or [source.alias for source in found])
    why = f"the query reads {', '.join(_called(source) for source in found) or 'a subquery without a name'}"
    fix = f"did you mean {'.'.join([close, *names[1:]])}?" if close else "name one of them, or leave the prefix out"
    return Problem(what, why, fix, line_of(column))


def _called(source: Source) -> str:
    called = source.title.rpartition(".")[2].lower()
    return source.title if source.alias == called else f"{source.title} as {source.alias}"


def _owned(read: _Read, column: exp.Column) -> bool:
    """Whether a name is a column of its own SELECT: one of a query around it has one value there."""
    level = read.levels.of(column)
    if level is None or level.outer is None:
        return _unresolved(read, column) is None
    names = [part.name.lower() for part in column.parts]
    return bool(holders(names, (source.readable for source in level.sources)))


def _qualifier(names: Sequence[str], sources: Iterable[Source]) -> tuple[Source, int] | None:
    """The source that a name begins with, and the part that names the column: `trips.fare`, `silver.trips.fare`."""
    for source in sources:
        if len(names) > 1 and names[0] == source.alias:
            return source, 1
        if len(names) > 2 and ".".join(names[:2]) == source.table:
            return source, 2
    return None


def _problem(node: exp.Expr, what: str, name: str, known: Iterable[str]) -> Problem:
    names = sorted(one for one in known if not ours(one))
    close = nearest(name, names)
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    fix = f"did you mean {close}?" if close else "name a column that it has"
    return Problem(what, f"its columns are {shown or 'none'}", fix, line_of(node))


def _spoken_for(column: exp.Column, level: Level) -> bool:
    """Names that are no columns of an input: words, units of time, aliases of the same SELECT, hidden columns."""
    first = column.parts[0].name.lower()
    if first.startswith("_") or first in WORDS or unit_of_time(column):
        return True
    return column.find_ancestor(exp.Kwarg) is not None or first in aliases(level.select) | _parameters(column)


def _parameters(column: exp.Column) -> set[str]:
    """What the lambdas around a name call their parameters."""
    found: set[str] = set()
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        found |= {one.name.lower() for one in around.expressions}
        around = around.find_ancestor(exp.Lambda)
    return found
