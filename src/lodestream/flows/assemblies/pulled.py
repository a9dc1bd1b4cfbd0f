"""Bronze from a source that plans its own batches: the table remembers where each of them ends."""

from __future__ import annotations

from pyspark.sql import DataFrame

from lodestream.flows.assemblies.bronze import BronzeHome
from lodestream.flows.batch import Batch, Outcome, Span
from lodestream.flows.context import Context
from lodestream.flows.flow import Flow
from lodestream.flows.parts import Intake, Making, Parts, Positions, Publish, Taking
from lodestream.flows.writing.append import AppendBatch
from lodestream.pipeline import Table
from lodestream.sources.source import Position, PulledSource
from lodestream.tables.lake import Lake
from lodestream.tables.publish import Base
from lodestream.tables.snapshot import Stamp


def pulled_flow(lake: Lake, table: Table, run: str, source: PulledSource) -> Flow:
    context = Context.of(lake, table, run)
    intake = PulledIntake(source)
    return Flow(context, Parts(intake, BronzeHome(context, source.ddl), _Pulled(context), taking=intake))


class PulledIntake(Intake, Taking):
    """A step pulls one batch and publishes it with the position that the source has just planned for it."""

    def __init__(self, source: PulledSource) -> None:
        self._source = source

    def look(self) -> Positions:
        return {}

    def news(self, known: Positions, latest: Positions) -> bool:
        return True  # only a pull can tell

    def span(self, stamp: Stamp | None, latest: Positions, rows: int) -> Span | None:
        return None  # the source plans it, in `take`

    def take(self, base: Base, latest: Positions, rows: int, publish: Publish) -> Outcome | None:
        # One base for the position that is read and for the rows that are staged: a run that publishes between the
        # two moves `main` away from it, and this batch is refused.
        name = self._source.name
        since = base.stamp.positions.get(name) if base.stamp else None
        done: list[Outcome] = []

        def hand_over(frame: DataFrame, position: Position) -> None:
            # How many rows were planned is not told; one stands for "some", the snapshot has the number.
            done.append(
                publish(Span({name: since} if since else {}, {name: position}, 1, caught_up=False, given=frame))
            )

        self._source.pull(since, hand_over, rows, stopping=lambda: True)
        return done[0] if done else None

    def accepted(self, since: Positions) -> Positions:
        """Forget the position: the source starts anew from what is left of it."""
        return {}

    def close(self) -> None:
        self._source.close()


class _Pulled(Making):
    def __init__(self, context: Context) -> None:
        self._context = context

    def make(self, span: Span) -> Batch:
        if span.given is None:
            raise RuntimeError("only a pull makes a batch")
        return AppendBatch(self._context.lake, self._context.name, span.given, span.rows, exact=False)
