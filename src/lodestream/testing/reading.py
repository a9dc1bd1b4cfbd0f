"""The rows of a table, for a test to look at."""

from __future__ import annotations

from typing import Any

from lodestream.config import Config, nearest
from lodestream.errors import LodeError
from lodestream.names import dead_of, hidden_column
from lodestream.pipeline import Graph
from lodestream.tables.inspect import Inspector, TableView
from lodestream.tables.python_rows import python_rows


class NotMade(LodeError):
    """A test asks for the rows of a table that does not exist: an empty list would let it pass."""


def read_rows(config: Config, graph: Graph, table: str) -> list[dict[str, Any]]:
    """All rows, in no order, without the column in which Gold keeps its state."""
    inspector = Inspector(config)
    view = inspector.look(table)
    if view is None or view.head() is None:
        raise NotMade(f"{table} has not been made", **_reason(inspector, graph, table))
    return _rows(view)


def read_letters(config: Config, graph: Graph, table: str) -> list[dict[str, Any]]:
    """The open dead letters of a table; none when no row of it was refused."""
    inspector = Inspector(config)
    if inspector.look(table) is None:
        raise NotMade(f"{table} has not been made", **_reason(inspector, graph, table))
    view = inspector.look(dead_of(table))
    letters = _rows(view) if view is not None and view.head() is not None else []
    decided = {letter["letter"] for letter in letters if letter["state"] != "open"}
    return [letter for letter in letters if letter["letter"] not in decided]


def _rows(view: TableView) -> list[dict[str, Any]]:
    found = (row for batch in view.table.scan().to_arrow().to_batches() for row in python_rows(batch))
    return [{name: value for name, value in row.items() if not hidden_column(name)} for row in found]


def _reason(inspector: Inspector, graph: Graph, table: str) -> dict[str, str]:
    names = list(graph.names)
    refusing = {dead_of(name): name for name in names}
    if table in refusing:
        return {"why": f"no row of {refusing[table]} was refused", "fix": "dead(table) gives an empty list"}
    if table not in names:
        close = nearest(table, names)
        why = f"the pipeline declares {', '.join(names)}"
        return {"why": why, "fix": f"did you mean {close}?" if close else "name one of these"}
    missing = [one for one in graph.names if one in graph.upstream(table) and not _is_made(inspector, one)]
    if not missing:
        return {"why": "nothing has run yet", "fix": f'call run(), or run(only=["{table}"])'}
    only = ", ".join(f'"{one}"' for one in (*missing, table))
    made = "has not been made" if len(missing) == 1 else "have not been made"
    return {
        "why": f"it is made from {', '.join(missing)}, which {made}",
        "fix": f"call run(), or run(only=[{only}]); or {_given(graph, missing[0])}",
    }


def _is_made(inspector: Inspector, table: str) -> bool:
    view = inspector.look(table)
    return view is not None and view.head() is not None


def _given(graph: Graph, table: str) -> str:
    what = "events" if graph[table].tier == "bronze" else "rows"
    return f'put {what} into it first: given("{table}", {what})'
