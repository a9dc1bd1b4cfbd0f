"""Bronze: what came in, as it came in. Nothing is parsed, so nothing can be refused."""

from __future__ import annotations

from collections.abc import Callable

from lodestream.flows.batch import Batch, Span
from lodestream.flows.context import Context
from lodestream.flows.flow import Flow
from lodestream.flows.intake import SourceIntake
from lodestream.flows.parts import Home, Making, Parts
from lodestream.flows.writing.append import AppendBatch
from lodestream.pipeline import Table
from lodestream.sources.source import Source
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake


def bronze_flow(lake: Lake, table: Table, run: str, source: Source, ddl: str) -> Flow:
    context = Context.of(lake, table, run)
    return Flow(context, Parts(SourceIntake([source]), BronzeHome(context, lambda: ddl), _AsItCame(context, source)))


class BronzeHome(Home):
    """`ddl` gives the columns of the source, asked for when the table is opened."""

    def __init__(self, context: Context, ddl: Callable[[], str]) -> None:
        self._context = context
        self._ddl = ddl

    def open(self, *, guest: bool = False) -> IcebergStore:
        table = self._context.table
        return self._context.lake.open(
            table.name,
            self._ddl(),
            partition_by=table.partition_by,
            properties=dict(table.properties),
            comment=table.description,
        )


class _AsItCame(Making):
    """Appends a span of the source, byte for byte."""

    def __init__(self, context: Context, source: Source) -> None:
        self._context = context
        self._source = source

    def make(self, span: Span) -> Batch:
        source = self._source
        rows = source.read(span.since[source.name], span.to[source.name])
        exact = not source.estimates
        return AppendBatch(self._context.lake, self._context.name, rows, span.rows, exact=exact)
