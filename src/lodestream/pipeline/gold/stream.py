"""The one stream that drives a delta, and what a delta may not contain."""

from __future__ import annotations

from sqlglot import exp

from lodestream.pipeline.gold.functions import unknown_function
from lodestream.pipeline.gold.plan import NotProvableError
from lodestream.pipeline.gold.query import Query, Source
from lodestream.pipeline.gold.statement import base_tables, table_name


def the_stream(query: Query) -> Source:
    """The one input whose rows drive the table; every other must be a lookup that rows are joined to."""
    streams = {name.lower() for name in query.statement.streams}
    mentions = [t for t in base_tables(query.select) if table_name(t).lower() in streams]
    names = sorted({table_name(t) for t in mentions})
    if len(names) > 1:
        raise NotProvableError(
            f"{' and '.join(names)} are joined as streams: a change on one side meets every row of the other",
            "declare the slowly changing side with lookup=[...]",
        )
    if len(mentions) > 1:
        raise NotProvableError(f"it reads {names[0]} {len(mentions)} times", "read it once, or split the table in two")
    found = [source for source in query.sources() if source.node is mentions[0]] if mentions else []
    if not found:
        raise NotProvableError("its stream is inside a subquery that cannot be merged", "make the subquery a table")
    _refuse_outer_joins(query, found[0])
    return found[0]


def _refuse_outer_joins(query: Query, stream: Source) -> None:
    own = stream.join
    outer = own is not None and (own.side or own.kind not in ("", "INNER", "CROSS"))
    later = any(s.join is not None and s.join.side in ("RIGHT", "FULL") for s in query.sources())
    if outer or later:
        raise NotProvableError(
            "an outer join keeps rows that no stream row brought in", "put the stream first and use LEFT JOIN"
        )


def refuse_neighbours(query: Query) -> None:
    """Refuse what makes one output row depend on other input rows, or on more than its input."""
    select = query.select
    if select.find(exp.Window) or select.args.get("qualify"):
        raise NotProvableError("a window function looks at neighbouring rows", "keep it in a table of its own")
    if select.find(exp.Limit):
        raise NotProvableError("a subquery with LIMIT depends on every row")
    name = unknown_function(select)
    if name:
        raise NotProvableError(f"function {name} is not known to give the same answer twice", "compute it in Silver")
