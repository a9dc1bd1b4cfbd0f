"""What a declared function makes of its input, as far as its own text shows: the columns, and whether rows are dropped.

Only a plain chain of DataFrame calls is read. Anything else says nothing, and is left to Spark.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_SAME = ("alias", "cache", "coalesce", "hint", "orderBy", "persist", "repartition", "sort")
DEDUPLICATES = ("distinct", "dropDuplicates", "drop_duplicates")
_DROPS = ("where", "filter", "distinct", "dropDuplicates", "drop_duplicates", "dropna", "limit")
# Calls whose columns no text shows, and ways to make a name of other ones.
_COMPUTED_NAMES = ("columns", "schema", "dtypes", "format", "lower", "pivot", "sparkSession", "upper")
_GENERATED_NAMES = ("col", "count", "key", "pos", "value")
_GENERATES = re.compile(r"explode|inline|stack|json_tuple|flatMap|mapIn")


@dataclass(frozen=True, slots=True)
class Shape:
    """`columns` as the function gives them; `dropped_at` is the line of a filter, when each row is one of the input.

    `dropped_by` is the call that stands there. `made` are the names, in lower case, that the function gave a value: the
    other columns are those of its input, as they were.
    """

    columns: tuple[str, ...]
    made: frozenset[str] = frozenset()
    unknown: str = ""  # the first plain name in a select() that nothing before it has
    dropped_at: int | None = None
    dropped_by: str = ""


def function_shape(function: Callable[..., Any], inputs: Mapping[str, Sequence[str] | None]) -> Shape | None:
    """The shape of the result over inputs (parameter to columns); None when it cannot be told for certain."""
    try:
        lines, start = inspect.getsourcelines(inspect.unwrap(function))
        text = textwrap.dedent("".join(lines))
        (tree,) = ast.parse(text).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if not isinstance(tree, ast.FunctionDef) or len(tree.decorator_list) > 1:
        return None  # another decorator may do anything
    known = {name: Shape(tuple(columns)) for name, columns in inputs.items() if columns is not None}
    found = _body(tree.body, known)
    if found is None or found.dropped_at is None:
        return found
    return replace(found, dropped_at=None if _GENERATES.search(text) else start + found.dropped_at - 1)


def dropping_call(function: Callable[..., Any]) -> int | None:
    """The line of the first call in a function that drops rows, as far as its text shows."""
    try:
        lines, start = inspect.getsourcelines(inspect.unwrap(function))
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    found = [
        node.func.end_lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _DROPS
    ]
    return start + min(line for line in found if line) - 1 if found else None


def never_names(function: Callable[..., Any], column: str) -> bool:
    """Whether a function surely gives no column of this name that its inputs do not have.

    Its text must not have the word, nor make names from others or use code of the project: else it may.
    """
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body
        used = inspect.getclosurevars(function)
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    if not isinstance(tree, ast.FunctionDef) or len(tree.decorator_list) > 1:
        return False
    held = {**used.globals, **used.nonlocals}.values()
    own = [one for one in held if not str(getattr(one, "__module__", None) or _name(one)).startswith("pyspark.")]
    word = re.compile(rf"\b{re.escape(column)}\b", re.IGNORECASE)
    if own or column.lower() in _GENERATED_NAMES:
        return False
    return not any(_may_name(node, word) for part in tree.body for node in ast.walk(part))


def _name(value: Any) -> str:
    return str(getattr(value, "__name__", ""))


def _may_name(node: ast.AST, word: re.Pattern[str]) -> bool:
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom | ast.FunctionDef):
        return True
    if isinstance(node, ast.BinOp) and (_text(node.left) is not None or _text(node.right) is not None):
        return True
    if isinstance(node, ast.Attribute):
        return bool(word.fullmatch(node.attr)) or node.attr in _COMPUTED_NAMES
    if isinstance(node, ast.keyword):
        return node.arg is None or bool(word.fullmatch(node.arg))
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(word.search(node.value))


def mentions(function: Callable[..., Any], word: str) -> bool:
    """Whether the text of a function has a word; True when it has no text to look at."""
    try:
        return re.search(rf"\b{re.escape(word)}\b", inspect.getsource(inspect.unwrap(function))) is not None
    except (OSError, TypeError):
        return True


def _body(statements: Sequence[ast.stmt], frames: dict[str, Shape]) -> Shape | None:
    """Plain assignments, then one return."""
    frames = dict(frames)
    for statement in statements:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # the docstring
        if isinstance(statement, ast.Return):
            return _frame(statement.value, frames)
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        (target,) = statement.targets
        if not isinstance(target, ast.Name):
            return None
        made = _frame(statement.value, frames)
        frames.pop(target.id, None)
        if made is not None:
            frames[target.id] = made
    return None


def _frame(node: ast.expr | None, frames: Mapping[str, Shape]) -> Shape | None:
    if isinstance(node, ast.Name):
        return frames.get(node.id)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return None
    before = _frame(node.func.value, frames)
    if before is None:
        return None
    call = node.func.attr
    if call in _DROPS and before.dropped_at is None:
        return replace(before, dropped_at=node.func.end_lineno, dropped_by=call)
    return before if call in (*_SAME, *_DROPS) else _columns(call, node.args, before)


def _columns(call: str, arguments: Sequence[ast.expr], before: Shape) -> Shape | None:
    texts = [_text(one) for one in arguments]
    if call == "withColumn" and len(texts) == 2 and texts[0]:
        return _with(before, [texts[0]])
    if call == "withColumns" and len(arguments) == 1 and isinstance(arguments[0], ast.Dict):
        names = [_text(key) for key in arguments[0].keys]
        return _with(before, [name for name in names if name]) if all(names) else None
    if call == "withColumnRenamed" and len(texts) == 2:
        old, new = texts
        return _renamed(before, old, new) if old and new else None
    if call == "drop" and all(texts):
        gone = {name.lower() for name in texts if name}
        return replace(before, columns=tuple(one for one in before.columns if one.lower() not in gone))
    return _selected(arguments, before) if call == "select" else None


def _renamed(before: Shape, old: str, new: str) -> Shape:
    columns = tuple(new if one.lower() == old.lower() else one for one in before.columns)
    return replace(before, columns=columns, made=before.made | {new.lower()})


def _with(before: Shape, names: Sequence[str]) -> Shape:
    held = {one.lower() for one in before.columns}
    columns = (*before.columns, *(name for name in names if name.lower() not in held))
    return replace(before, columns=columns, made=before.made | {name.lower() for name in names})


def _selected(arguments: Sequence[ast.expr], before: Shape) -> Shape | None:
    names: list[str] = []
    made: set[str] = set()
    for one in arguments:
        text = _text(one)
        if text == "*":
            names += before.columns
        elif text and re.fullmatch(r"\w+", text):
            names.append(text)
            if not before.unknown and text.lower() not in {name.lower() for name in before.columns}:
                before = replace(before, unknown=text)
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "alias":
            alias = _text(one.args[0]) if len(one.args) == 1 and not one.keywords else None
            if alias is None:
                return None
            names.append(alias)
            made.add(alias.lower())
        else:
            return None
    return replace(before, columns=tuple(names), made=before.made | made)


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
