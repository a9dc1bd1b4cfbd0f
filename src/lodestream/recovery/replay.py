"""Replay dead letters: judge their bytes again, publish what passes now, and say so in the same protocol.

A replay is a guest's batch. It leaves the positions as they are and names the decisions that belong to it, which were
committed to the dead letters before: a crash in between leaves decisions that no batch names, and those are void.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import islice

from lodestream.errors import CatalogUnavailable, ConfigError
from lodestream.flows.dead.envelope import EVENT
from lodestream.flows.flow import Batch
from lodestream.flows.silver.flow import SilverFlow
from lodestream.recovery.choice import Choice
from lodestream.recovery.open_letters import OpenLetters, in_bucket
from lodestream.recovery.trial import Failing, Trial
from lodestream.runtime.progress import Progress, SilentProgress
from lodestream.tables.publish import Base, Moved
from lodestream.tables.snapshot import GUEST, Stamp

# Letters judged and published at once: what this process holds of them in memory.
_SHARE = 20_000
_MOST_REDOS = 20
_SHOWN = 20


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


class Replay:
    def __init__(self, flow: SilverFlow, choice: Choice, *, dry_run: bool = False) -> None:
        self._flow = flow
        self._choice = choice
        self._done = Replayed(flow.name, dry_run=dry_run)

    def run(self, progress: Progress | None = None) -> Replayed:
        flow = self._flow
        if not flow.lake.exists(flow.name) or not flow.dead.exists():
            return self._done
        flow.visit()
        try:
            shares = self._shares()
            with (progress or SilentProgress()).step(f"Replaying {flow.name}", self._waiting, "letters") as step:
                for number in range(shares):
                    step.advance(self._share(number, shares))
        finally:
            flow.leave()
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

    def _share(self, number: int, of: int) -> int:
        for _ in range(_MOST_REDOS):
            if not self._flow.steady:
                self._flow.ask()  # what is judged now must still be true when it is published
            base = self._flow.writer.begin()
            letters = self._letters()
            events = letters.chosen(self._choice).where(in_bucket(number, of)).select(EVENT).distinct()
            trial = Trial(self._flow, letters, events)
            try:
                if trial.passing and not self._done.dry_run:
                    self._publish(trial, letters.snapshot, base)
                self._done.add(trial)
                return trial.letters
            except Moved:
                continue
            finally:
                self._flow.thank()
                trial.release()
        raise _restless(self._flow.name)

    def _publish(self, trial: Trial, snapshot: int, before: Base) -> None:
        """Tried again as long as only the run beside us has moved the table, if what was judged stays true then."""
        batch = trial.batch()
        for attempt in range(_MOST_REDOS):
            self._flow.ask()
            self._flow.dead.settle(self._flow.writer.store)
            base = self._flow.writer.begin()
            moved = base.place != before.place and not self._flow.steady
            if moved or self._flow.dead.decided_since(snapshot):
                raise Moved(self._flow.name)
            try:
                self._attempt(trial, batch, base)
                return
            except Moved:
                # The run beside us publishes at its own pace: not always at the same moment as we do.
                time.sleep(0.05 * (attempt % 7))
        raise _restless(self._flow.name)

    def _attempt(self, trial: Trial, batch: Batch, base: Base) -> None:
        flow = self._flow
        stamp = self._stamp(base, batch, trial.passing)
        contract = flow.contract.title if flow.contract else None
        flow.dead.decide(trial.passed, stamp, base.place, contract)
        batch.companions(stamp, base.place)
        stamp = replace(stamp, notes={**stamp.notes, **batch.notes()})
        staged = flow.writer.stage(base, stamp, batch.write)
        batch.audit(staged.snapshot)
        flow.writer.publish(staged)
        batch.tidy(lost=False)
        self._done.replayed += trial.passing
        self._done.batches.append(stamp.batch)
        self._done.rows.update({**batch.counts, "out": staged.snapshot.added_rows})

    def _stamp(self, base: Base, batch: Batch, letters: int) -> Stamp:
        if base.stamp is None:
            raise ConfigError(f"{self._flow.name} has no batch yet", why="its letters belong to none", fix="lode run")
        before = base.stamp
        kept = {"asof": before.notes["asof"]} if "asof" in before.notes else {}
        notes = {**kept, GUEST: "replay", "replayed": str(letters)}
        flow = self._flow
        return Stamp(flow.name, flow.run, before.batch + 1, before.positions, before.positions, batch.counts, notes)

    def _letters(self) -> OpenLetters:
        return OpenLetters(self._flow.lake, self._flow.name, self._flow.dead.survey(self._flow.writer.store))


def _restless(table: str) -> CatalogUnavailable:
    return CatalogUnavailable(
        f"{table} moved under {_MOST_REDOS} attempts at one replay",
        why="the run that keeps the table publishes faster than the replay can",
        fix="try again, or replay while it is stopped",
    )
