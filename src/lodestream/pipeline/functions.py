"""Reading a declared Python function: its inputs, and whether it aggregates."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from lodestream.pipeline.location import Location, declaration_error
from lodestream.pipeline.sql import Aggregate

_FOLDS = {"agg", "cube", "groupBy", "groupby", "pivot", "rollup"}


def function_inputs(function: Callable[..., Any], location: Location) -> tuple[str, ...]:
    """The parameter names without defaults: each is an input table."""
    name = getattr(function, "__name__", repr(function))
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise declaration_error(
            location,
            f"{name} is a coroutine or generator",
            why="a table is defined by the DataFrame that its function returns",
            fix="use a plain def with return",
        )
    inputs: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        _check_parameter(name, parameter, location)
        if parameter.default is inspect.Parameter.empty:
            inputs.append(parameter.name)
    if not inputs:
        raise declaration_error(
            location,
            f"{name} has no inputs",
            why="the parameters of the function are the tables it reads",
            fix="name the input tables as parameters, or declare a query without inputs with sql=",
        )
    return tuple(inputs)


def _check_parameter(function: str, parameter: inspect.Parameter, location: Location) -> None:
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        stars = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
        raise declaration_error(
            location,
            f"{function} takes {stars}{parameter.name}",
            why="each parameter names one input table, so the graph can be read from the signature",
            fix="write the input tables as parameters, one each",
        )
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise declaration_error(
            location,
            f"{function} takes {parameter.name} by position only",
            why="inputs are passed by name",
            fix="remove the / from the signature",
        )


def function_aggregates(function: Callable[..., Any]) -> list[Aggregate]:
    """Calls such as .groupBy in the function's own source, as far as it can be read."""
    try:
        lines, start = inspect.getsourcelines(inspect.unwrap(function))
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return []
    return [
        Aggregate(f".{node.func.attr}()", start + node.func.end_lineno - 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _FOLDS
        and node.func.end_lineno is not None
    ]
