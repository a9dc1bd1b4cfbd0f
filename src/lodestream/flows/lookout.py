"""How far the sources of a flow reach, and how much of it the next batch takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lodestream.errors import SourceChanged
from lodestream.flows.batch import Span
from lodestream.sources.source import Position, Source
from lodestream.tables.snapshot import Stamp


@dataclass(frozen=True, slots=True)
class Lookout:
    """`drives` says of which sources news alone start a batch."""

    sources: Sequence[Source]
    drives: Callable[[Source], bool]

    def look(self) -> dict[str, Position] | None:
        """How far each source reaches now; None while one does not exist."""
        found: dict[str, Position] = {}
        for source in self.sources:
            latest = source.latest()
            if latest is None:
                return None
            found[source.name] = latest
        return found

    def news(self, positions: Mapping[str, Position], latest: Mapping[str, Position]) -> bool:
        """Whether something waits, as far as the sources tell: an idle flow does not ask the catalog."""
        driving = filter(self.drives, self.sources)
        return any(_waiting(source, positions.get(source.name), latest[source.name]) for source in driving)

    def span(self, stamp: Stamp | None, latest: Mapping[str, Position], rows: int) -> Span | None:
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
            if self.drives(source):
                waiting += source.pending(start, to[source.name])
                caught_up = caught_up and to[source.name] == newest
        pin = stamp is None and any(source.pins_start for source in self.sources)
        return Span(since, to, waiting, caught_up, stamp) if waiting or pin else None

    def starts(self) -> dict[str, Position]:
        """Where each source that exists begins."""
        return {one.name: one.start(latest) for one in self.sources if (latest := one.latest()) is not None}

    def accepted(self, since: Mapping[str, Position]) -> dict[str, Position]:
        """Where to go on when what was lost between there and here is accepted.

        Only the sources that are broken go on from elsewhere: what others have for us is still to be read.
        """
        latest = {one.name: found for one in self.sources if (found := one.latest()) is not None}
        there = [one for one in self.sources if one.name in latest]
        # A flow that never published begins where it is declared to, and that may be gone as well.
        begun = {one.name: since.get(one.name) or one.start(latest[one.name]) for one in there}
        broken = [one for one in there if _broken(one, begun[one.name], latest[one.name])]
        if not broken and len(there) == len(self.sources) == 1:
            # Broken in a way that only reading shows; of several sources nobody could say which one it is.
            broken = [one for one in there if one.name in since]
        return {**begun, **{one.name: one.accept(begun[one.name], latest[one.name]) for one in broken}}

    def asof(self, to: Mapping[str, Position]) -> float | None:
        """Epoch seconds up to which a table that has read this far holds everything; None when a source cannot tell."""
        known = [source.asof(to[source.name]) for source in self.sources if self.drives(source)]
        moments = [moment for moment in known if moment is not None]
        return min(moments) if moments and len(moments) == len(known) else None

    def confirm(self, to: Mapping[str, Position]) -> None:
        for source in self.sources:
            if source.name in to:
                source.confirm(to[source.name])


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
        return source.pending(since, latest)
    except SourceChanged:
        return 1  # step() raises it where it is reported
