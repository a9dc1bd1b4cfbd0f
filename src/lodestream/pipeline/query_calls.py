"""The functions that a query calls: those that Spark does not have, and sums of what is no number."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from lodestream.pipeline.gold.parsing import call
from lodestream.pipeline.gold.spark_functions import KNOWN
from lodestream.pipeline.query_levels import Levels
from lodestream.pipeline.query_problem import Problem, line_of, words

# Calls with a grammar of their own: they are in no registry of functions.
GRAMMAR = words(
    "cast try_cast extract position trim substr substring overlay timestampadd timestampdiff dateadd datediff date_add "
    "date_diff timediff struct first last any_value exists in values transform map array row case if not distinct "
    "interval named_struct"
)
_ADDS_UP = ("sum", "avg", "mean", "try_sum", "try_avg", "stddev", "variance")
_NOT_A_NUMBER = ("array", "map", "struct", "binary", "boolean", "variant", "date", "timestamp_ntz")
# Spark adds up moments with a zone, as seconds, but has no spread of them.
_NO_MOMENTS = ("stddev", "variance")
_ALWAYS = {
    "array": "array", "collect_list": "array", "collect_set": "array", "map": "map", "named_struct": "struct",
    "sequence": "array", "split": "array", "struct": "struct",
}  # fmt: skip
# What other databases call a function of Spark's.
_ELSEWHERE = {
    "average": "avg", "charindex": "locate", "datetime": "timestamp", "getdate": "now", "group_concat": "listagg",
    "iif": "if", "stdev": "stddev", "strftime": "date_format", "strpos": "locate",
}  # fmt: skip


def unknown_functions(tree: exp.Query, extended: bool) -> Iterator[Problem]:
    for node in tree.find_all(exp.Func):
        name = called(node)
        if (
            name is None
            or name in KNOWN
            or name in GRAMMAR
            or isinstance(node.parent, exp.Dot | exp.Table | exp.Lateral)
        ):
            continue
        close = near_function(name)
        if close is not None and not extended:
            why = "Spark has no function of that name"
            yield Problem(f"there is no function {name}", why, f"did you mean {close}?", line_of(node))
        else:
            why = "it is none of Spark's own, and only Spark can tell whether the catalog or an extension has it"
            fix = f"did you mean {close}? If it is one of yours" if close else "if it is one of yours"
            fix += ": `lode plan --deep` asks Spark"
            yield Problem(f"function {name} is not known", why, fix, line_of(node), "warning")


def called(node: exp.Expr) -> str | None:
    """The name of a function as it is written; None for what has another form than a call."""
    name = call(node)
    return name if name is not None and name.isidentifier() else None


def near_function(name: str) -> str | None:
    """The built-in function that a misspelt name most likely means: one letter off, in a longer name two."""
    most = 1 if len(name) <= 4 else 2
    found = [(away, known) for known in (*KNOWN, *_ELSEWHERE) if (away := _distance(name, known, most)) <= most]
    close = min(found)[1] if found else None
    return _ELSEWHERE.get(close, close) if close is not None else None


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


def not_numbers(tree: exp.Query, levels: Levels) -> Iterator[Problem]:
    for node in tree.find_all(exp.AggFunc):
        name, argument = called(node), node.this
        if name not in _ADDS_UP or not isinstance(argument, exp.Expression):
            continue
        kind = _kind(argument, levels)
        plain = kind.lower().split("<")[0].strip() if kind is not None else ""
        if kind is not None and (plain in _NOT_A_NUMBER or (plain == "timestamp" and name in _NO_MOMENTS)):
            column = argument.sql("spark")
            what, why = f"{name}({column}) adds up {kind}", f"{name} takes numbers"
            yield Problem(what, why, _instead(kind.lower(), name, column), line_of(argument))


def _kind(argument: exp.Expression, levels: Levels) -> str | None:
    """Of a column what is known of it; of a few expressions what they always are."""
    plain = argument.unnest()
    if isinstance(plain, exp.Column):
        return levels.kind(plain)
    if isinstance(plain, exp.Predicate | exp.Connector | exp.Not):
        return "boolean"
    return _ALWAYS.get(called(plain) or "")


def _instead(kind: str, name: str, column: str) -> str:
    if kind.startswith("array"):
        return f"of how many there are: {name}(size({column})); of what is in it: aggregate({column}, ...) inside"
    if kind == "boolean":
        return f"to count where it is true: count_if({column})"
    if kind == "date":
        return f"say what of it is a number: {name}(unix_date({column})), or take min or max"
    if kind.startswith("timestamp"):
        return f"say what of it is a number: {name}(unix_seconds(cast({column} AS timestamp))), or take min or max"
    return f"name a column of numbers, or turn {column} into one"
