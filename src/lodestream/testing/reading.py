"""The rows of a table, for a test to look at."""

from __future__ import annotations

from typing import Any

from lodestream.config import Config, nearest
from lodestream.errors import LodeError
from lodestream.pipeline import Graph
from lodestream.pipeline.gold.plan import STATE_COLUMN
from lodestream.tables.inspect import Inspector, TableView

_DEAD = "__dead"


class NotMade(LodeError):
    """A test asks for the rows of a table that does not exist: an empty list would let it pass."""


def read_rows(config: Config, graph: Graph, table: str) -> list[dict[str, Any]]:
    """All rows, in no order, without the column in which Gold keeps its state."""
    view = Inspector(config).look(table)
    if view is None or view.head() is None:
        raise NotMade(f"{table} has not been made", **_reason(graph, table))
    return _rows(view)


def read_letters(config: Config, graph: Graph, table: str) -> list[dict[str, Any]]:
    """The open dead letters of a table; none when no row of it was refused."""
    inspector = Inspector(config)
    if inspector.look(table) is None:
        raise NotMade(f"{table} has not been made", **_reason(graph, table))
    view = inspector.look(table + _DEAD)
    letters = _rows(view) if view is not None and view.head() is not None else []
    decided = {letter["letter"] for letter in letters if letter["state"] != "open"}
    return [letter for letter in letters if letter["letter"] not in decided]


def _rows(view: TableView) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = view.table.scan().to_arrow().to_pylist()
    return [{name: value for name, value in row.items() if name != STATE_COLUMN} for row in found]


def _reason(graph: Graph, table: str) -> dict[str, str]:
    names = list(graph.names)
    if table.removesuffix(_DEAD) in names and table.endswith(_DEAD):
        return {"why": f"no row of {table.removesuffix(_DEAD)} was refused", "fix": "dead(table) gives an empty list"}
    if table not in names:
        close = nearest(table, names)
        why = f"the pipeline declares {', '.join(names)}"
        return {"why": why, "fix": f"did you mean {close}?" if close else "name one of these"}
    inputs = ", ".join(graph.inputs(table)) or "its source"
    return {
        "why": f"nothing has run yet, or {inputs} does not exist",
        "fix": "call run() first, and give its input rows",
    }
