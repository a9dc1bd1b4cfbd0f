"""What is new for a Gold table: inputs that belong together, an edited query, or a rebuild that was asked for."""

from __future__ import annotations

from dataclasses import replace

from lodestream.errors import LodeError
from lodestream.flows.agreement import Agreement
from lodestream.flows.batch import Outcome, Span
from lodestream.flows.gold.refusals import refuses_a_value
from lodestream.flows.gold.table import GoldTable
from lodestream.flows.intake import SourceIntake
from lodestream.flows.parts import Intake, Positions, Publish, Taking
from lodestream.observe import VerifyRebuilt
from lodestream.tables.notes import DEFINITION
from lodestream.tables.publish import Base
from lodestream.tables.snapshot import Stamp

_NO_CAP = 2**62


class GoldIntake(Intake, Taking):
    """Whatever the plan reads: the tables that it follows change with it."""

    def __init__(self, gold: GoldTable, agreement: Agreement | None) -> None:
        self._gold = gold
        self._agreement = agreement

    def ready(self) -> bool:
        return self._inputs.ready()

    def look(self) -> Positions | None:
        return self._inputs.look()

    def news(self, known: Positions, latest: Positions) -> bool:
        return self._gold.rebuilding or self._inputs.news(known, latest)

    def take(self, base: Base, latest: Positions, rows: int, publish: Publish) -> Outcome | None:
        gold = self._gold
        asked = gold.rebuilds_asked  # another thread may ask in the middle of a batch: that one does not count
        span = self.span(base.stamp, latest, rows)
        if span is None:
            return None
        outcome = self._published(base, latest, span, publish)
        if gold.rebuilt(asked):
            done = outcome.published
            gold.context.notices.add(VerifyRebuilt(snapshot=done.snapshot, rows=done.rows.get("out", 0)))
        return outcome

    def _published(self, base: Base, latest: Positions, span: Span, publish: Publish) -> Outcome:
        """Where even the query refuses a value, a later change may have corrected it: then all of them at once do."""
        try:
            return publish(span)
        except Exception as error:
            if span.caught_up or not refuses_a_value(error):
                raise
        return publish(self.span(base.stamp, latest, _NO_CAP) or span)

    def accepted(self, since: Positions) -> Positions:
        return self._inputs.accepted(since)

    def starts(self) -> Positions:
        return self._inputs.starts()

    def refuse_gone(self, known: Positions) -> None:
        self._inputs.refuse_gone(known)

    def confirm(self, to: Positions) -> None:
        self._inputs.confirm(to)

    def asof(self, to: Positions) -> float | None:
        return self._inputs.asof(to)

    def explain(self, error: Exception) -> LodeError | None:
        return self._inputs.explain(error)

    def close(self) -> None:
        self._inputs.close()

    @property
    def _inputs(self) -> SourceIntake:
        return SourceIntake(self._gold.tables)

    def span(self, stamp: Stamp | None, latest: Positions, rows: int) -> Span | None:
        gold = self._gold
        known = stamp.positions if stamp else {}
        chosen = self._agreement.chosen(known, latest) if self._agreement else latest
        if chosen is None:
            return None
        # The whole state is read, or positions belong together: then there is nothing to cap.
        capped = self._adds_up(stamp) and (self._agreement is None or self._agreement.alone)
        span = self._inputs.span(stamp, chosen, rows if capped else _NO_CAP)
        stale = stamp is not None and stamp.notes.get(DEFINITION) != gold.definition
        if span is None and stamp is not None and (stale or gold.rebuilding):
            since = {table.name: known.get(table.name) or table.start(chosen[table.name]) for table in gold.tables}
            span = Span(since, chosen, 1, previous=stamp)  # nothing new, but other rows
        return replace(span, caught_up=span.caught_up and chosen == latest) if span else None

    def _adds_up(self, stamp: Stamp | None) -> bool:
        """Whether a part of the change can be added to what is stored."""
        plan = self._gold.plan
        known = stamp is not None and stamp.notes.get(DEFINITION) == self._gold.definition
        return known and plan is not None and plan.strategy == "delta" and not plan.on_lookup_change
