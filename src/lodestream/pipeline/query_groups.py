"""Columns that are neither grouped nor aggregated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from lodestream.pipeline.gold.functions import has_aggregate
from lodestream.pipeline.gold.lookup import is_star
from lodestream.pipeline.gold.spark_functions import AGGREGATES, GENERATORS, KNOWN
from lodestream.pipeline.query_calls import called
from lodestream.pipeline.query_levels import aliases
from lodestream.pipeline.query_problem import WORDS, Problem, line_of, unit_of_time

_FOLDS = (exp.AggFunc, exp.Any, exp.All, exp.Exists, exp.Filter, exp.Lambda, exp.WithinGroup)


def ungrouped(tree: exp.Query, owned: Callable[[exp.Column], bool]) -> Iterator[Problem]:
    """`owned` says whether a name surely is a column of the SELECT that it stands in."""
    for select in tree.find_all(exp.Select):
        beyond = list(_beyond(select))
        yield from beyond
        clause, having = select.args.get("group"), select.args.get("having")
        folds = any(has_aggregate(item) for item in select.expressions)
        if beyond or (clause is None and having is None and not folds) or (clause and clause.args.get("all")):
            continue
        allowed = (_grouped_names(select, clause) if clause is not None else set()) | aliases(select)
        items = (*select.expressions, *([having.this] if having is not None else []))
        found = {column.sql(): column for item in items if (column := next(_bare(item, allowed), None)) is not None}
        wrong = [column for column in found.values() if owned(column)]
        if wrong and having is not None and clause is None and not folds:
            yield _without_groups(having, wrong[0])
            continue
        yield from (_problem(column, clause is not None) for column in wrong)


def _without_groups(having: exp.Having, column: exp.Column) -> Problem:
    return Problem(
        "HAVING without GROUP BY",
        f"it judges groups, and makes one of all rows: {column.sql('spark')} is neither grouped nor aggregated",
        "to choose rows, write WHERE; to judge groups, say which: GROUP BY",
        line_of(having),
    )


def having_names(tree: exp.Query) -> set[str]:
    """The columns that HAVING mentions, by name alone."""
    return {name for clause in tree.find_all(exp.Having) for name in _names_in(clause)}


def _beyond(select: exp.Select) -> Iterator[Problem]:
    """`GROUP BY 5` of a query with two columns."""
    given = select.expressions
    if any(is_star(item) or isinstance(item, exp.Aliases) or _generates(item) for item in given):
        return
    for clause, words in ((select.args.get("group"), "GROUP BY"), (select.args.get("order"), "ORDER BY")):
        for node in clause.expressions if clause is not None else ():
            number = node.this if isinstance(node, exp.Ordered) else node
            if not isinstance(number, exp.Literal) or number.is_string or not number.name.isdigit():
                continue
            if not 1 <= int(number.name) <= len(given):
                most = f"{len(given)} columns" if len(given) > 1 else "one"
                numbers = f"a number from 1 to {len(given)}, or " if len(given) > 1 else ""
                yield Problem(
                    f"{words} {number.name} means no column",
                    f"a number counts the columns of the SELECT, which has {most}",
                    f"write {numbers}the name of a column",
                    line_of(number) or line_of(select),
                )


def _generates(item: exp.Expr) -> bool:
    """A generator may give several columns."""
    return any(called(node) in GENERATORS for node in item.find_all(exp.Func))


def _problem(column: exp.Column, grouped: bool) -> Problem:
    name = column.sql("spark")
    add = f"add {name} to GROUP BY" if grouped else f"add GROUP BY {name}"
    return Problem(
        f"{name} is neither grouped nor aggregated",
        "a group has many rows, and nothing says whose value it shows",
        f"{add}, or say which: any_value({name}), max({name})",
        line_of(column),
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


def _bare(item: exp.Expr, allowed: set[str]) -> Iterator[exp.Column]:
    """Columns outside of everything that could be an aggregate or a key."""
    for node in item.walk(prune=_shut):
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            parts = {part.name.lower() for part in node.parts}
            if parts.isdisjoint(allowed) and parts.isdisjoint(WORDS) and not unit_of_time(node):
                yield node


def _shut(node: exp.Expr) -> bool:
    """A window looks at rows of its own, a subquery is a query of its own, and an unknown function may fold rows."""
    if isinstance(node, (exp.Window, exp.Query, *_FOLDS)):
        return True
    name = called(node) if isinstance(node, exp.Func) else None
    return name is not None and (name not in KNOWN or name in AGGREGATES)
