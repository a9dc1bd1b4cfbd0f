"""After a batch its keys are noted, so that the next one knows which keys the table has."""

from __future__ import annotations

from dataclasses import replace

from lodestream.flows.batch import Outcome, Published
from lodestream.flows.judging.terms import Contracted
from lodestream.flows.parts import After
from lodestream.flows.writing.home import SilverHome


class NoteKeys(After):
    def __init__(self, kept: Contracted, home: SilverHome) -> None:
        self._kept = kept
        self._home = home

    def follow(self, outcome: Outcome | None) -> Published | None:
        terms = self._kept.terms
        if outcome is None or outcome.facts is None or not terms.dedups:
            return None
        after = self._home.store.snapshot(outcome.published.snapshot)
        if after is not None:
            terms.directory.follow(replace(outcome.facts, state=outcome.base.head), after)
        return None
