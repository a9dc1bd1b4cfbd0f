"""The user's query with other columns, its tables read through views; a change passes through it with its weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lodestream.names import WEIGHT
from lodestream.pipeline.gold.edits import Edit, body_end, edited, reading, select_list, table_span
from lodestream.pipeline.gold.parsing import span
from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.plan import NotProvableError, feed_view
from lodestream.pipeline.gold.query import Query
from lodestream.pipeline.gold.scopes import Scope, Source
from lodestream.pipeline.gold.stream import Stream


def selecting(query: Query, items: Sequence[str], stream: Stream | None, scans: Mapping[int, str] | None = None) -> str:
    """These items over the FROM, joins and WHERE of the outermost SELECT.

    With a stream, its changes are read instead of its rows, and the weight is handed up through the subqueries.
    """
    select, parsed = query.top.select, query.parsed
    if select is None:
        raise NotProvableError("a UNION has no FROM of its own")
    instead = dict(scans or {})
    edits: list[Edit] = []
    if stream is not None:
        instead[table_span(stream.source.node)[0]] = feed_view(stream.name)
        for scope, source in stream.way[1:]:
            edits += _carry(scope, source)
    edits += reading(query.tree, instead)
    start, last = select_list(parsed, select)
    head = edited(parsed.plain, edits, end=start)
    return f"{head}SELECT {', '.join(items)}{edited(parsed.plain, edits, start=last, end=body_end(parsed, select))}"


def reread(query: Query, scans: Mapping[int, str]) -> str:
    """The whole query, with some of its tables read through narrower scans."""
    return edited(query.parsed.plain, reading(query.tree, scans))


def weight_of(stream: Stream) -> str:
    return f"{quoted(stream.alias)}.{WEIGHT} AS {WEIGHT}"


def _carry(scope: Scope, source: Source) -> list[Edit]:
    """One more column in a subquery. A star is written out: it would bring the weight a second time."""
    if scope.select is None:
        raise NotProvableError("a subquery has no SELECT of its own")
    edits: list[Edit] = []
    for node in scope.select.expressions:
        if node.is_star:
            if len(scope.select.expressions) > 1:
                raise NotProvableError("a star among other columns", "name the columns")
            columns = ", ".join(f"{item.piece.text} AS {quoted(item.name)}" for item in scope.items)
            edits.append((*span(node), columns))
    end = span(scope.select.expressions[-1])[1]
    return [*edits, (end, end, f", {quoted(source.alias)}.{WEIGHT} AS {WEIGHT}")]
