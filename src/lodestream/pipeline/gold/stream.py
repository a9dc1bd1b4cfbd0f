"""The one stream that drives a delta: the way down to it, and what may not lie on that way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lodestream.pipeline.gold.plan import NotProvableError
from lodestream.pipeline.gold.query import Query
from lodestream.pipeline.gold.scopes import Scope, Source


@dataclass(frozen=True, slots=True)
class Stream:
    """`way` are the SELECTs from the outermost to the one that reads the stream, each with the source on the way."""

    name: str
    way: tuple[tuple[Scope, Source], ...]

    @property
    def source(self) -> Source:
        return self.way[-1][1]

    @property
    def alias(self) -> str:
        """What carries the weight in the outermost SELECT."""
        return self.way[0][1].alias


def the_stream(query: Query) -> Stream:
    """The one input whose rows drive the table; every other must be a lookup that rows are joined to."""
    streams = {name.lower(): name for name in query.statement.streams}
    ways = [way for way in _ways(query.top) if way[-1][1].table in streams]
    elsewhere = [name for scope in query.top.every() for name in scope.read_elsewhere if name in streams]
    names = sorted({str(way[-1][1].table) for way in ways} | set(elsewhere))
    if len(names) > 1:
        raise NotProvableError(
            f"{' and '.join(names)} are joined as streams: a change on one side meets every row of the other",
            "declare the slowly changing side with lookup=[...]",
        )
    if len(ways) + len(elsewhere) > 1:
        raise NotProvableError(
            f"it reads {names[0]} {len(ways) + len(elsewhere)} times", "read it once, or split the table in two"
        )
    if not ways:
        raise NotProvableError(
            "its stream is read in a subquery of an expression", "join it, or make the subquery a table"
        )
    way = ways[0]
    for depth, (scope, source) in enumerate(way):
        _refuse_outer_joins(scope, source)
        if depth:
            _refuse_folding(scope)
        if source.shared or len(source.branches) > 1:
            raise NotProvableError("its stream is inside a subquery that is more than one", "make the subquery a table")
    return Stream(streams[str(way[-1][1].table)], way)


def _ways(scope: Scope) -> Iterator[tuple[tuple[Scope, Source], ...]]:
    for source in scope.sources:
        if source.table is not None:
            yield ((scope, source),)
        for branch in source.branches:
            for below in _ways(branch):
                yield ((scope, source), *below)


def _refuse_outer_joins(scope: Scope, stream: Source) -> None:
    outer = stream.side or stream.kind not in ("", "INNER", "CROSS")
    if outer or any(source.side in ("RIGHT", "FULL") for source in scope.sources):
        raise NotProvableError(
            "an outer join keeps rows that no stream row brought in", "put the stream first and use LEFT JOIN"
        )


def _refuse_folding(scope: Scope) -> None:
    """Below the outermost SELECT a row must come from a row."""
    if scope.group is not None or scope.distinct:
        raise NotProvableError("its stream is folded in a subquery", "make the subquery a table")
    refuse_neighbours(scope)


def refuse_neighbours(scope: Scope) -> None:
    """Refuse what makes one output row depend on other input rows."""
    if scope.windows:
        raise NotProvableError("a window function looks at neighbouring rows", "keep it in a table of its own")
    if scope.limited:
        raise NotProvableError("a subquery with LIMIT depends on every row")
    if scope.select is not None and scope.select.args.get("windows"):
        raise NotProvableError("a WINDOW clause looks at neighbouring rows", "keep it in a table of its own")
