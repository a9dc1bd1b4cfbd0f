"""What is wrong with a query, told from its text and the columns of its inputs. No Spark.

Only what is certain is told: a name that may be resolved in a way this module does not know passes, and is left to
Spark itself (`lode plan --deep`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from lodestream.config import nearest
from lodestream.errors import DeclarationError
from lodestream.pipeline.gold.spark_functions import AGGREGATES, GENERATORS, KNOWN
from lodestream.pipeline.lint import Severity
from lodestream.pipeline.location import Location
from lodestream.pipeline.sql import parse_query
from lodestream.pipeline.table import TIERS

# A table's columns: name to Spark type, None where the type is not known.
Columns = Mapping[str, str | None]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that Spark reads where a column could stand.
_WORDS = _words(
    "all current_catalog current_database current_date current_schema current_time current_timestamp current_user "
    "default grouping__id localtimestamp null session_user session_window user window"
)
_UNITS = _words(
    "year years quarter quarters month months week weeks day days dayofyear hour hours minute minutes second seconds "
    "millisecond milliseconds microsecond microseconds isoyear century decade"
)
# Calls with a grammar of their own: they are in no registry of functions.
_GRAMMAR = _words(
    "cast try_cast extract position trim substr substring overlay timestampadd timestampdiff dateadd datediff date_add "
    "date_diff timediff struct first last any_value exists in values transform map array row case if not distinct "
    "interval named_struct"
)
_ADDS_UP = ("sum", "avg", "mean", "try_sum", "try_avg", "stddev", "variance")
# Spark adds up moments and days as well, as seconds.
_NOT_A_NUMBER = ("array", "map", "struct", "binary", "boolean", "variant")
_UNREAD = (exp.QueryTransform, exp.Pivot, exp.MatchRecognize, exp.Command)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that Spark would refuse, and the line of the query that has it."""

    what: str
    why: str
    fix: str
    line: int | None
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class _Read:
    """A query that could be read: its text, its tree, and each SELECT with the sources it sees."""

    text: str
    tree: exp.Query
    scopes: Mapping[int, Scope]
    tables: Mapping[str, Columns | None]


def check_query(text: str, tables: Mapping[str, Columns | None], *, extended: bool = False) -> list[Problem]:
    """Every problem of a query over these tables; None stands for columns that are not known.

    `extended` says that Spark is configured with functions of others.
    """
    read = _read(text, tables)
    if read is None:
        return []
    found = [*_unknown_columns(read), *_unknown_functions(read, extended), *_not_numbers(read), *_ungrouped(read)]
    return sorted(found, key=lambda one: one.line or 0)


def result_columns(text: str, tables: Mapping[str, Columns | None]) -> Columns | None:
    """The columns that a query gives, or None when they cannot be told for certain."""
    read = _read(text, tables)
    if read is None:
        return None
    scope = next((one for one in read.scopes.values() if one.expression is read.tree), None)
    return _given(read, scope) if scope else None


def check_expression(text: str, columns: Columns, *, source: str = "the row", extended: bool = False) -> list[Problem]:
    """The same for a condition over the columns of one row."""
    name = "_lode_row"
    found = check_query(f"SELECT 1 FROM {name} WHERE (\n{text}\n)", {name: columns}, extended=extended)  # noqa: S608
    return [Problem(p.what.replace(name, source), p.why.replace(name, source), p.fix, None, p.severity) for p in found]


def dropping_line(text: str, followed: str) -> int | None:
    """The line of a WHERE or QUALIFY that the rows of this table pass one by one; None where each may become many."""
    read = _read(text, {})
    if read is None or read.tree.find(exp.SetOperation, exp.Join, exp.Lateral, exp.Unnest, exp.Explode):
        return None
    calls = {_called(read, call) for call in read.tree.find_all(exp.Func)}
    if any(name in GENERATORS or name not in KNOWN | _GRAMMAR for name in calls if name is not None):
        return None
    ctes = {cte.alias.lower() for cte in read.tree.find_all(exp.CTE)}
    for select in read.tree.find_all(exp.Select):
        clause = select.args.get("where") or select.args.get("qualify")
        tables = {".".join(part.name for part in one.parts[-2:]).lower() for one in select.find_all(exp.Table)}
        if clause is None or not clause.find(exp.Column) or select.find_ancestor(exp.Where) is not None:
            continue
        if followed in tables or tables <= ctes:
            return _line(clause) or 1
    return None


def _read(text: str, tables: Mapping[str, Columns | None]) -> _Read | None:
    try:
        tree = parse_query(text, Location("", 1))
        if any(True for _ in tree.find_all(*_UNREAD)) or _recursive(tree):
            return None
        scopes = {id(scope.expression): scope for scope in traverse_scope(tree)}
    except (DeclarationError, SqlglotError):
        return None  # Spark may read more than we do
    named = {name.lower(): columns for name, columns in tables.items()}
    return _Read(text, tree, scopes, named)


def _recursive(tree: exp.Query) -> bool:
    return any(one.args.get("recursive") for one in tree.find_all(exp.With))


# ---- columns


def _unknown_columns(read: _Read) -> Iterator[Problem]:
    found: dict[str, Problem] = {}
    for column in read.tree.find_all(exp.Column):
        problem = _unresolved(read, column)
        if problem is not None and (problem.line or 0) < (found.get(problem.what, problem).line or 0) + 1:
            found[problem.what] = problem  # named twice: the first line tells
    yield from found.values()


def _unresolved(read: _Read, column: exp.Column) -> Problem | None:
    parts = [part.name.lower() for part in column.parts]
    scope = _scope_of(read, column)
    if scope is None or isinstance(column.this, exp.Star) or _spoken_for(column, parts, scope):
        return None
    sources = _visible(read, scope)
    if sources is None:
        return None
    names = {name.lower() for columns in sources.values() for name in columns or ()}
    titles = _titles(scope, sources)
    source = _qualifier(parts, sources)
    if source is not None:
        columns = sources[source]
        name = parts[1] if parts[0] == source else parts[2]
        if columns is None or parts[0] in names or name in {one.lower() for one in columns}:
            return None
        return _problem(column, name, f"is no column of {titles[source]}", columns)
    if parts[0] in names or any(columns is None for columns in sources.values()):
        return None
    known = [name for columns in sources.values() for name in columns or ()]
    among = " or ".join(titles[name] for name in sources)
    if len(parts) > 1:
        what = f"names {column.parts[0].name}, which is neither a table of the query nor a column of {among}"
        return _problem(column, parts[0], what, [*sources, *known])
    return _problem(column, parts[0], f"is no column of {among}", known)


def _qualifier(parts: Sequence[str], sources: Mapping[str, Any]) -> str | None:
    """The source that a name begins with: `trips.fare`, `silver.trips.fare`."""
    if len(parts) > 1 and parts[0] in sources:
        return parts[0]
    return parts[1] if len(parts) > 2 and parts[0] in TIERS and parts[1] in sources else None


def _titles(scope: Scope, sources: Mapping[str, Any]) -> dict[str, str]:
    """How each source is called in a message: a table by its full name, whatever its alias."""
    found = {name: name for name in sources}
    level: Scope | None = scope
    while level is not None:
        for alias, source in level.sources.items():
            if isinstance(source, exp.Table) and found.get(alias.lower()) == alias.lower():
                found[alias.lower()] = ".".join(part.name for part in source.parts)
        level = level.parent
    return found


def _problem(column: exp.Column, name: str, what: str, known: Iterable[str]) -> Problem:
    names = sorted(known)
    close = nearest(name, names)
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    fix = f"did you mean {close}?" if close else "name a column that it has"
    return Problem(f"{column.sql('spark')} {what}", f"its columns are {shown or 'none'}", fix, _line(column))


def _spoken_for(column: exp.Column, parts: Sequence[str], scope: Scope) -> bool:
    """Names that are no columns of an input: words, units of time, aliases of the same SELECT, hidden columns."""
    if parts[0].startswith("_") or parts[0] in _WORDS:
        return True
    if len(parts) == 1 and parts[0] in _UNITS and isinstance(column.parent, exp.Func):
        return True
    if column.find_ancestor(exp.Kwarg, exp.Lambda) is not None:
        return True
    select = scope.expression
    return isinstance(select, exp.Select) and parts[0] in _aliases(select)


def _aliases(select: exp.Select) -> set[str]:
    found: set[str] = set()
    for item in select.expressions:
        if isinstance(item, exp.Aliases):
            found |= {str(name).lower() for name in item.aliases}
        elif item.alias:
            found.add(item.alias.lower())
    return found


def _scope_of(read: _Read, node: exp.Expr) -> Scope | None:
    select = node.find_ancestor(exp.Select)
    return read.scopes.get(id(select)) if select is not None else None


def _visible(read: _Read, scope: Scope) -> dict[str, Columns | None] | None:
    """Alias to columns, the outer queries' too; None when something in FROM is not understood."""
    found: dict[str, Columns | None] = {}
    level: Scope | None = scope
    while level is not None:
        for name, columns in _sources(read, level).items():
            found.setdefault(name, columns)
        level = level.parent
    return found or None


def _sources(read: _Read, scope: Scope) -> dict[str, Columns | None]:
    select = scope.expression
    if not isinstance(select, exp.Select):
        return {}
    found = {name.lower(): _columns_of(read, source) for name, source in scope.sources.items()}
    mentioned = {alias.lower() for alias in scope.selected_sources}
    found = {name: columns for name, columns in found.items() if name in mentioned}
    for lateral in select.find_all(exp.Lateral, exp.Unnest):
        if lateral.find_ancestor(exp.Select) is select:
            alias = lateral.args.get("alias")
            named = [one.name for one in alias.args.get("columns") or []] if alias else []
            # Without names of its own a generator gives those of its function.
            found[(alias.name if alias else "").lower() or "_generated"] = dict.fromkeys(named) if named else None
    clauses = (select.args.get("from_"), *(select.args.get("joins") or []))
    if len([one for one in clauses if one is not None]) > len(scope.selected_sources):
        found["_unread"] = None
    return found


def _columns_of(read: _Read, source: Any) -> Columns | None:
    if isinstance(source, Scope):
        names = [one.name if isinstance(one, exp.Expr) else str(one) for one in source.outer_columns]
        return dict.fromkeys(names) if names else _given(read, source)
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier) or source.args.get("pivots"):
        return None
    columns = read.tables.get(".".join(part.name for part in source.parts[-2:]).lower())
    renamed = source.alias_column_names
    return dict.fromkeys(renamed) if renamed else columns


def _given(read: _Read, scope: Scope) -> Columns | None:
    """The columns that a query gives to whoever reads it."""
    query = scope.expression
    if isinstance(query, exp.SetOperation):
        first = None if query.args.get("by_name") else read.scopes.get(id(query.this.unnest()))
        return _given(read, first) if first is not None else None
    if not isinstance(query, exp.Select) or query.args.get("kind"):
        return None
    found: dict[str, str | None] = {}
    for item in query.expressions:
        given = _item(read, scope, item)
        if given is None:
            return None
        found |= given
    return found


def _item(read: _Read, scope: Scope, item: exp.Expr) -> Columns | None:
    if item.is_star:
        star = item if isinstance(item, exp.Star) else item.this
        if not isinstance(star, exp.Star) or any(star.args.values()):
            return None
        sources = _sources(read, scope)
        chosen = [sources.get(item.table.lower())] if isinstance(item, exp.Column) else list(sources.values())
        if not chosen or any(columns is None for columns in chosen):
            return None
        return {name: kind for columns in chosen for name, kind in (columns or {}).items()}
    if isinstance(item, exp.Aliases):
        return dict.fromkeys(str(name) for name in item.aliases)
    value = item.unalias()
    name = item.alias if isinstance(item, exp.Alias) else item.name if isinstance(item, exp.Column | exp.Dot) else ""
    if not name:
        return None  # Spark names it by its text, a generator by its function
    return {name: _type(read, value) if isinstance(value, exp.Column) else None}


def _type(read: _Read, column: exp.Column) -> str | None:
    """The declared type of a column that can only be this one."""
    scope = _scope_of(read, column)
    if scope is None or len(column.parts) > 2:
        return None
    sources = _sources(read, scope)
    chosen = [sources.get(column.table.lower())] if column.table else list(sources.values())
    if any(columns is None for columns in chosen):
        return None
    kinds = [
        kind for columns in chosen for name, kind in (columns or {}).items() if name.lower() == column.name.lower()
    ]
    return kinds[0] if len(kinds) == 1 else None


# ---- functions


def _unknown_functions(read: _Read, extended: bool) -> Iterator[Problem]:
    for call in read.tree.find_all(exp.Func):
        name = _called(read, call)
        if (
            name is None
            or name in KNOWN
            or name in _GRAMMAR
            or isinstance(call.parent, exp.Dot | exp.Table | exp.Lateral)
        ):
            continue
        close = near_function(name)
        if close is not None and not extended:
            why = "Spark has no function of that name"
            yield Problem(f"there is no function {name}", why, f"did you mean {close}?", _line(call))
        else:
            why = "it is none of Spark's own, and only Spark can tell whether the catalog or an extension has it"
            fix = f"did you mean {close}? If it is one of yours" if close else "if it is one of yours"
            yield Problem(
                f"function {name} is not known", why, f"{fix}: `lode plan --deep` asks Spark", _line(call), "warning"
            )


def _called(read: _Read, call: exp.Expr) -> str | None:
    """The name of a function as it is written; None for what has another form than a call."""
    start, end = call.meta.get("start"), call.meta.get("end")
    if start is None or end is None:
        return None
    written = read.text[start : end + 1]
    return written.lower() if written.isidentifier() else None


def near_function(name: str) -> str | None:
    """The built-in function that a misspelt name most likely means: one letter off, in a longer name two."""
    most = 1 if len(name) <= 4 else 2
    found = [(away, known) for known in KNOWN if (away := _distance(name, known, most)) <= most]
    return min(found)[1] if found else None


def _distance(one: str, other: str, most: int) -> int:
    """How many letters must be changed, added, left out or swapped with their neighbour."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for n, letter in enumerate(one, 1):
        row = [n]
        for m, wanted in enumerate(other, 1):
            cost = min(last[m] + 1, row[m - 1] + 1, last[m - 1] + (letter != wanted))
            if n > 1 and m > 1 and letter == other[m - 2] and one[n - 2] == wanted:
                cost = min(cost, before[m - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def _not_numbers(read: _Read) -> Iterator[Problem]:
    for call in read.tree.find_all(exp.AggFunc):
        name = _called(read, call)
        argument = call.this
        if name not in _ADDS_UP or not isinstance(argument, exp.Column):
            continue
        kind = _type(read, argument)
        if kind is not None and kind.lower().split("<")[0].strip() in _NOT_A_NUMBER:
            column = argument.sql("spark")
            yield Problem(
                f"{name}({column}) adds up {kind}",
                f"{name} takes numbers",
                _instead(kind.lower(), name, column),
                _line(argument),
            )


def _instead(kind: str, name: str, column: str) -> str:
    if kind.startswith("array"):
        return f"of how many there are: {name}(size({column})); of what is in it: aggregate({column}, ...) inside"
    if kind == "boolean":
        return f"to count where it is true: count_if({column})"
    return f"name a column of numbers, or turn {column} into one"


# ---- groups


def _ungrouped(read: _Read) -> Iterator[Problem]:
    for select in read.tree.find_all(exp.Select):
        clause = select.args.get("group")
        if clause is None and not any(_aggregates(read, item) for item in select.expressions):
            continue
        if clause is not None and clause.args.get("all"):
            continue
        allowed = _grouped_names(select, clause) if clause is not None else set()
        for item in select.expressions:
            column = next(_bare(read, item, allowed | _aliases(select)), None)
            if column is not None and _unresolved(read, column) is None:
                yield _ungrouped_problem(column, clause is not None)


def _ungrouped_problem(column: exp.Column, grouped: bool) -> Problem:
    name = column.sql("spark")
    add = f"add {name} to GROUP BY" if grouped else f"add GROUP BY {name}"
    return Problem(
        f"{name} is neither grouped nor aggregated",
        "a group has many rows, and nothing says whose value it shows",
        f"{add}, or say which: any_value({name}), max({name})",
        _line(column),
    )


def _grouped_names(select: exp.Select, clause: exp.Group) -> set[str]:
    """Every column that GROUP BY mentions, by name alone: too many is safe."""
    items = {item.alias.lower(): item for item in select.expressions if item.alias}
    found: set[str] = set()
    for column in clause.find_all(exp.Column):
        found |= {part.name.lower() for part in column.parts}
        if column.name.lower() in items:
            found |= _names_in(items[column.name.lower()])
    for number in clause.find_all(exp.Literal):
        if not number.is_string and number.name.isdigit() and 0 < int(number.name) <= len(select.expressions):
            found |= _names_in(select.expressions[int(number.name) - 1])
    return found


def _names_in(node: exp.Expr) -> set[str]:
    return {part.name.lower() for column in node.find_all(exp.Column) for part in column.parts}


def _aggregates(read: _Read, item: exp.Expr) -> bool:
    return any(_aggregate(read, node) for node in item.walk(prune=_closed))


def _aggregate(read: _Read, node: exp.Expr) -> bool:
    return isinstance(node, exp.Func) and _called(read, node) in AGGREGATES and not isinstance(node.parent, exp.Window)


def _bare(read: _Read, item: exp.Expr, allowed: set[str]) -> Iterator[exp.Column]:
    """Columns outside of everything that could be an aggregate or a key."""

    def shut(node: exp.Expr) -> bool:
        if _closed(node) or isinstance(
            node, exp.AggFunc | exp.Any | exp.All | exp.Exists | exp.Filter | exp.Lambda | exp.WithinGroup
        ):
            return True
        name = _called(read, node) if isinstance(node, exp.Func) else None
        return name is not None and (name not in KNOWN or name in AGGREGATES)

    for node in item.walk(prune=shut):
        if isinstance(node, exp.Column) and not shut(node) and not isinstance(node.this, exp.Star):
            parts = {part.name.lower() for part in node.parts}
            unit = len(parts) == 1 and parts <= _UNITS and isinstance(node.parent, exp.Func)
            if parts.isdisjoint(allowed) and parts.isdisjoint(_WORDS) and not unit:
                yield node


def _closed(node: exp.Expr) -> bool:
    """A window looks at rows of its own, a subquery is a query of its own."""
    return isinstance(node, exp.Window | exp.Query)


def _line(node: exp.Expr) -> int | None:
    lines = (one.meta["line"] for one in node.walk() if "line" in one.meta)
    return next(lines, None)
