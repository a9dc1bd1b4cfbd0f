"""What `lode plan` says of stored tables that this version cannot go on with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lodestream.config import Config
from lodestream.errors import LodeError
from lodestream.pipeline import Finding
from lodestream.planning.keyed import keyed
from lodestream.planning.project import Project
from lodestream.tables.order_keys_kept import by_earlier_version, kept_by_earlier_version

# A table's columns by its name, or None when it does not exist.
Columns = Callable[[str], Sequence[str] | None]


def stored_findings(project: Project, columns: Columns) -> Iterator[Finding]:
    for table in project.graph:
        if not keyed(project.graph, table.name):
            continue
        try:
            held = columns(table.name) or ()
        except LodeError:
            return  # a catalog that does not answer is told of beside the contracts
        if kept_by_earlier_version(held):
            refused = by_earlier_version(table.name)
            yield Finding("error", table.name, refused.what, refused.why or "", refused.fix or "", table.location)


def stored_columns(config: Config) -> Columns:
    """The stored tables as the catalog shows them, without a JVM."""
    from lodestream.tables.inspect import Inspector

    inspector = Inspector(config)

    def look(name: str) -> Sequence[str] | None:
        view = inspector.look(name)
        return None if view is None else [field.name for field in view.table.schema().fields]

    return look


def answering(columns: Columns) -> Columns:
    """The same, where a catalog that does not answer holds no table."""

    def look(name: str) -> Sequence[str] | None:
        try:
            return columns(name)
        except LodeError:
            return None

    return look
