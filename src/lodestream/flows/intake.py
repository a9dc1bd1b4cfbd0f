"""What is new in the sources of a flow, and how much of it the next batch takes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lodestream.errors import LodeError, SourceChanged
from lodestream.flows.batch import Span
from lodestream.flows.parts import Intake, Positions
from lodestream.sources.source import Position, Source
from lodestream.tables.snapshot import Stamp


class SourceIntake(Intake):
    """`driving` names the sources whose news alone start a batch: lookups do not. `dating` names those that tell how
    old the rows are; without it, those that drive do."""

    def __init__(
        self,
        sources: Sequence[Source],
        driving: Collection[str] | None = None,
        dating: Collection[str] | None = None,
    ) -> None:
        self.sources = tuple(sources)
        self._driving = frozenset(source.name for source in sources) if driving is None else frozenset(driving)
        self._dating = self._driving if dating is None else frozenset(dating)

    def ready(self) -> bool:
        return all(source.latest() is not None for source in self.sources)

    def look(self) -> Positions | None:
        found: dict[str, Position] = {}
        for source in self.sources:
            latest = source.latest()
            if latest is None:
                return None
            found[source.name] = latest
        return found

    def news(self, known: Positions, latest: Positions) -> bool:
        driving = (source for source in self.sources if source.name in self._driving)
        return any(_waiting(source, known.get(source.name), latest[source.name]) for source in driving)

    def span(self, stamp: Stamp | None, latest: Positions, rows: int) -> Span | None:
        """About `rows` rows at most, from where the last batch ended; None when nothing waits."""
        known = stamp.positions if stamp else {}
        since: dict[str, Position] = {}
        to: dict[str, Position] = {}
        waiting, caught_up = 0, True
        for source in self.sources:
            newest = latest[source.name]
            start = known.get(source.name) or source.start(newest)
            source.check(start, newest)
            since[source.name] = start
            to[source.name] = source.cap(start, newest, rows)
            if source.name in self._driving:
                waiting += source.pending(start, to[source.name])
                caught_up = caught_up and to[source.name] == newest
        pin = stamp is None and any(source.pins_start for source in self.sources)
        return Span(since, to, waiting, caught_up, stamp) if waiting or pin else None

    def starts(self) -> Positions:
        return {one.name: one.start(latest) for one in self.sources if (latest := one.latest()) is not None}

    def accepted(self, since: Positions) -> Positions:
        """Only the sources that are broken go on from elsewhere: what others have for us is still to be read."""
        latest = {one.name: found for one in self.sources if (found := one.latest()) is not None}
        there = [one for one in self.sources if one.name in latest]
        # A flow that never published begins where it is declared to, and that may be gone as well.
        begun = {one.name: since.get(one.name) or one.start(latest[one.name]) for one in there}
        broken = [one for one in there if _broken(one, begun[one.name], latest[one.name])]
        if not broken and len(there) == len(self.sources) == 1:
            # Broken in a way that only reading shows; of several sources nobody could say which one it is.
            broken = [one for one in there if one.name in since]
        return {**begun, **{one.name: one.accept(begun[one.name], latest[one.name]) for one in broken}}

    def asof(self, to: Positions) -> float | None:
        # A source that is gone has no place in a position from which reading goes on by a person's decision.
        dating = [one for one in self.sources if one.name in self._dating]
        known = [one.asof(to[one.name]) if one.name in to else None for one in dating]
        moments = [moment for moment in known if moment is not None]
        return min(moments) if moments and len(moments) == len(known) else None

    def refuse_gone(self, known: Positions) -> None:
        for source in self.sources:
            if source.name in known and source.latest() is None:
                raise source.gone(known[source.name])

    def confirm(self, to: Positions) -> None:
        for source in self.sources:
            if source.name in to:
                source.confirm(to[source.name])

    def explain(self, error: Exception) -> LodeError | None:
        return next((known for source in self.sources if (known := source.explain(error))), None)

    def close(self) -> None:
        for source in self.sources:
            source.close()


def _broken(source: Source, since: Position, latest: Position) -> bool:
    try:
        source.check(since, latest)
    except SourceChanged:
        return True
    return False


def _waiting(source: Source, since: Position | None, latest: Position) -> int:
    if since is None:
        return 1
    if since == latest:
        return 0
    try:
        pending = source.pending(since, latest)
        if not pending:
            # It is not as it was, and has nothing for us: a topic that was made anew, a line that was added to a file
            # that we have read, rows that were deleted. Unless we look, that goes unnoticed until something else comes.
            source.check(since, latest)
        return pending
    except SourceChanged:
        return 1  # step() raises it where it is reported
