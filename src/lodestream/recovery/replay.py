"""Replay dead letters: judge their bytes again, publish what passes now, and say so in the same protocol.

A replay is a guest's batch. It leaves the positions as they are and names the decisions that belong to it, which were
committed to the dead letters before: a crash in between leaves decisions that no batch names, and those are void.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, takewhile
from typing import TypeVar

from lodestream.errors import CatalogUnavailable, ConfigError
from lodestream.flows.batch import Batch
from lodestream.flows.guests.visit import Visit, Visited
from lodestream.names import EVENT
from lodestream.recovery.choice import Choice
from lodestream.recovery.open_letters import OpenLetters, in_bucket
from lodestream.recovery.trial import Failing, Trial
from lodestream.runtime.progress import Progress, SilentProgress
from lodestream.tables.notes import ASOF, CODE, GUEST, REPLAYED
from lodestream.tables.publish import Base, Moved, Staged, until_published
from lodestream.tables.snapshot import Stamp
from lodestream.tables.store import contains

# Letters judged and published at once: what this process holds of them in memory.
_SHARE = 20_000
_SHOWN = 20
_MOST_UNANSWERED = 4
T = TypeVar("T")


@dataclass(slots=True)
class Replayed:
    """What became of the chosen letters. `rows` adds up over the batches, which are named."""

    table: str
    chosen: int = 0
    replayed: int = 0
    failing: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    batches: list[int] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: list[Failing] = field(default_factory=list)
    dry_run: bool = False

    def add(self, trial: Trial) -> None:
        self.chosen += trial.letters
        self.failing += trial.letters - trial.passing
        for one in trial.failing:
            self.reasons.update(dict.fromkeys(one.now, len(one.letters)))
        self.examples += islice(trial.failing, _SHOWN - len(self.examples))


@dataclass(frozen=True, slots=True)
class _Sent:
    trial: Trial
    batch: Batch
    staged: Staged


class Replay:
    def __init__(self, table: Visited, choice: Choice, *, dry_run: bool = False) -> None:
        self._table = table
        self._choice = choice
        self._done = Replayed(table.name, dry_run=dry_run)
        self._unanswered = 0
        self._sent: _Sent | None = None  # what may be published without our knowing

    def run(self, progress: Progress | None = None) -> Replayed:
        if not self._table.has_letters():
            return self._done
        self._visit = Visit(self._table)
        try:
            shares = self._shares()
            name = self._table.name
            with (progress or SilentProgress()).step(f"Replaying {name}", self._waiting, "letters") as step:
                for number in range(shares):
                    step.advance(self._until_published(partial(self._patient_share, number, shares)))
        finally:
            self._visit.leave()
        return self._done

    def _shares(self) -> int:
        letters = self._letters()
        chosen = letters.chosen(self._choice)
        if self._choice.limit is not None:
            # Named once: when these are replayed, the same filters would choose the next ones.
            ids = [row.letter for row in chosen.select("letter").toLocalIterator()]
            self._waiting, self._choice = len(ids), Choice(letters=tuple(ids) or ("none",))
        else:
            self._waiting = chosen.count()
        return math.ceil(self._waiting / _SHARE)

    def _patient_share(self, number: int, of: int) -> int:
        """The run beside us may win every race for the catalog within one attempt: then all of it is tried again."""
        try:
            return self._share(number, of)
        except Moved:
            raise
        except CatalogUnavailable as error:
            self._unanswered += 1
            if self._unanswered > _MOST_UNANSWERED:
                raise
            time.sleep(self._unanswered)
            raise Moved(self._table.name, why=error.why, fix=error.fix) from error

    def _share(self, number: int, of: int) -> int:
        visit = self._visit
        if not visit.steady:
            visit.ask()  # what is judged now must still be true when it is published
        base = visit.writer.begin()
        if (late := self._landed()) is not None:
            self._done.chosen += late.passing  # judged and published before, and open no more
        letters = self._letters()
        events = letters.chosen(self._choice).where(in_bucket(number, of)).select(EVENT).distinct()
        trial = Trial(visit, letters, events, base.stamp.positions if base.stamp else {})
        try:
            if trial.passing and not self._done.dry_run:
                self._publish(trial, letters.snapshot, base)
            self._done.add(trial)
            return trial.letters
        finally:
            visit.stop_asking()
            trial.release()

    def _publish(self, trial: Trial, snapshot: int, before: Base) -> None:
        """Tried again as long as only the run beside us has moved the table, if what was judged stays true then."""
        batch, visit = trial.batch(), self._visit

        def attempt() -> Moved | None:
            visit.ask()
            visit.dead.settle(visit.writer.store)
            base = visit.writer.begin()
            if self._sent is not None and self._sent.trial is trial and self._landed() is not None:
                return None
            moved = base.main_version != before.main_version and not visit.steady
            if moved or visit.dead.decided_since(snapshot) or self._guests_since(before):
                return Moved(self._table.name)
            self._attempt(trial, batch, base)
            return None

        # The run beside us publishes at its own pace: not always at the same moment as we do.
        judged_again = self._until_published(attempt, pause=lambda tries: time.sleep(0.05 * (tries % 7)))
        if judged_again is not None:
            raise judged_again

    def _attempt(self, trial: Trial, batch: Batch, base: Base) -> None:
        visit = self._visit
        stamp = self._stamp(base, batch, trial.passing)
        visit.dead.decide(trial.passed, stamp, base.main_version, visit.terms.title)
        batch.companions(stamp, base.main_version)
        stamp = replace(stamp, notes={**stamp.notes, **batch.notes()})
        staged = visit.writer.stage(base, stamp, batch.write)
        batch.audit(staged.snapshot)
        self._sent = _Sent(trial, batch, staged)
        visit.writer.publish(staged)
        self._count(self._sent)

    def _landed(self) -> Trial | None:
        """What turns out to be published by a commit whose answer was lost, or that came late; it is counted now."""
        sent = self._sent
        if sent is None or not contains(self._visit.writer.store, sent.staged.snapshot.id):
            return None
        self._count(sent)
        return sent.trial

    def _guests_since(self, before: Base) -> bool:
        """Whether letters may be in the table that were open when we looked: by a commit that was on its way then."""
        store = self._visit.writer.store
        later = takewhile(lambda one: one.id != before.head, store.ancestors(store.head()))
        return any(one.stamp is not None and one.stamp.guest for one in later)

    def _count(self, sent: _Sent) -> None:
        self._sent = None
        sent.batch.tidy(lost=False)
        self._done.replayed += sent.trial.passing
        self._done.batches.append(sent.staged.stamp.batch)
        self._done.rows.update({"out": sent.staged.snapshot.added_rows, **sent.batch.counts})

    def _stamp(self, base: Base, batch: Batch, letters: int) -> Stamp:
        name = self._table.name
        if base.stamp is None:
            raise ConfigError(f"{name} has no batch yet", why="its letters belong to none", fix="lode run")
        before = base.stamp
        # The rows before stay as the code of their time made them: of that, the last batch says what it said.
        kept = {name: before.notes[name] for name in (ASOF, CODE) if name in before.notes}
        notes = {**kept, GUEST: "replay", REPLAYED: str(letters)}
        run = self._table.context.run
        return Stamp(name, run, before.batch + 1, before.positions, before.positions, batch.counts, notes)

    def _letters(self) -> OpenLetters:
        survey = self._visit.dead.survey(self._visit.writer.store)
        return OpenLetters(self._table.context.lake, self._table.name, survey)

    def _until_published(self, attempt: Callable[[], T], pause: Callable[[int], None] = lambda _tries: None) -> T:
        return until_published(
            self._table.name,
            attempt,
            why="the run that keeps the table publishes faster than the replay can",
            fix="try again, or replay while it is stopped",
            pause=pause,
        )
