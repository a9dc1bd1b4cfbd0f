"""The sinks of a table as declared; `export=` is short for one of them."""

from __future__ import annotations

from typing import cast

from lodestream.pipeline import Table
from lodestream.pipeline.location import declaration_error
from lodestream.serving.parquet import Parquet
from lodestream.serving.sink import Sink

EXPORT = "export"


def labels_of(table: Table) -> tuple[str, ...]:
    return (*(one.label for one in table.sinks), *((EXPORT,) if table.export else ()))


def sinks_of(table: Table) -> tuple[Sink, ...]:
    """Raises what is wrong with one: nothing of a run may depend on it then."""
    exports = (Parquet(table.export, name=EXPORT),) if table.export else ()
    sinks = (*cast("tuple[Sink, ...]", table.sinks), *exports)
    if table.export and any(one.label == EXPORT for one in table.sinks):
        raise declaration_error(
            table.location,
            f'{table.name}: a sink is called "{EXPORT}", as the one of export= is',
            why="what was delivered is remembered by that name",
            fix='give the sink another: name="..."',
        )
    for sink in sinks:
        for problem in sink.problems():
            raise declaration_error(table.location, f"{table.name}: sink {sink.label}: {problem}")
    return sinks
