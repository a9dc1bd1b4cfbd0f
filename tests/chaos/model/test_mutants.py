"""The checks themselves are tested: code that is broken on purpose must not get past them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from protocol_model import NAME, ModelLetters, ModelMaking, ModelStore, Weather, World
from protocol_run import run
from protocol_schedule import Livelock

from lodestream.errors import LodeError, OutcomeUnknown
from lodestream.flows.flow import Flow
from lodestream.flows.letters import attempts as letters
from lodestream.flows.letters import table as dead
from lodestream.tables import publish, store
from lodestream.tables.memory import MemoryStore
from lodestream.tables.publish import Base, Moved, Staged, Writer
from lodestream.tables.snapshot import Stamp
from lodestream.tables.store import MAIN, Refused

MOST = 500
Patch = pytest.MonkeyPatch


def append_to_main(patch: Patch) -> None:
    """Publish by plain append: two writers with the same `from` both land."""

    def stage(self: Writer, base: Base, stamp: Any, write: Callable[..., None]) -> Staged:
        write(MAIN, stamp.properties())
        self.store.refresh()
        head = self.store.head()
        assert head is not None
        return Staged(base, head, stamp)

    patch.setattr(Writer, "stage", stage)
    patch.setattr(Writer, "publish", lambda self, staged: staged.snapshot)


def no_alignment(patch: Patch) -> None:
    """The branch stays where the last attempt left it, and that attempt is published along."""
    patch.setattr(
        Writer, "_align", lambda self, base: self.store.ref(self.branch) or self._store.point(self.branch, base.head)
    )
    lenient_stage(patch)


def lenient_stage(patch: Patch) -> None:
    """What is on the branch is taken for ours, whatever it was built on."""

    def stage(self: Writer, base: Base, stamp: Any, write: Callable[..., None]) -> Staged:
        self._align(base)
        self._write(stamp, write)
        self.store.refresh()
        snapshot = self.store.ref(self.branch)
        if snapshot is None or snapshot.id == base.head:
            raise Moved(self.store.name)
        return Staged(base, snapshot, stamp)

    patch.setattr(Writer, "stage", stage)


def guess_published(patch: Patch) -> None:
    """A lost answer is taken for a yes."""
    patch.setattr(Writer, "_resolve", lambda self, staged: None)
    # The next batch builds on what it believes was published.
    begin = Writer.begin

    def believing(self: Writer) -> Base:
        base = begin(self)
        mine = self._published
        return base if mine is None else Base(base.head, base.main_version, mine.stamp)

    patch.setattr(Writer, "begin", believing)


def only_the_head_counts(patch: Patch) -> None:
    """Positions are read from the head alone, so compaction hides them."""

    def last_stamped(store: Any) -> Any:
        head = store.head()
        return head if head is not None and head.stamp is not None else None

    patch.setattr(publish, "last_stamped", last_stamped)
    patch.setattr(store, "last_stamped", last_stamped)


def force_main(patch: Patch) -> None:
    """Publish by setting `main`, wherever it is."""

    def fast_forward(self: ModelStore, branch: str, upto: int, place: str) -> None:
        self.refresh()
        if branch not in self._refs:
            raise Refused("no branch")
        self.table.set(MAIN, self._refs[branch])

    patch.setattr(ModelStore, "fast_forward", fast_forward)


def by_ancestry_alone(patch: Patch) -> None:
    """Iceberg's own fast-forward: it takes a rollback for an invitation."""

    def fast_forward(self: ModelStore, branch: str, upto: int, place: str) -> None:
        self.refresh()
        if self._refs[MAIN] not in self.table.chain(upto):
            raise Refused("not an ancestor")
        self.table.set(MAIN, upto)

    patch.setattr(ModelStore, "fast_forward", fast_forward)


def never_look_who_else(patch: Patch) -> None:
    """A run that was overtaken goes on."""
    patch.setattr(Writer, "_still_alone", lambda self, stamped: None)


def compaction_restamps(patch: Patch) -> None:
    """Maintenance copies the stamp of what it rewrites."""
    append = MemoryStore.append

    def stamped(
        self: MemoryStore, branch: str, properties: Any, *args: Any, operation: str = "append", **more: Any
    ) -> None:
        head = self.head()
        if operation == "replace" and self.name == NAME and head is not None:
            properties = {key: value for key, value in head.summary.items() if key.startswith("lode.")}
        append(self, branch, properties, *args, operation=operation, **more)

    patch.setattr(MemoryStore, "append", stamped)


def clear_open_letters(patch: Patch) -> None:
    """Letters that `main` does not name are deleted at once, also those of a run that is about to publish."""
    judge = letters.judge_letters

    def hasty(*args: Any) -> letters.Verdict:
        found = judge(*args)
        return letters.Verdict((*found.orphans, *found.open), (), found.beyond, found.settled)

    patch.setattr(dead, "judge_letters", hasty)


def keep_every_letter(patch: Patch) -> None:
    """Letters of attempts that came to nothing stay."""
    patch.setattr(dead, "judge_letters", lambda *args: letters.Verdict())


def letters_after_the_batch(patch: Patch) -> None:
    """Dead letters are committed once the batch is public: a crash between the two loses them."""
    step = ModelMaking.make

    def make(self: ModelMaking, span: Any) -> Any:
        batch = step(self, span)
        early = batch.companions
        kept: list[Any] = []
        batch.companions = lambda *args: kept.append(args)  # type: ignore[method-assign]
        batch.tidy = lambda lost: [early(*args) for args in kept] if not lost else None  # type: ignore[method-assign]
        return batch

    patch.setattr(ModelMaking, "make", make)


def expiry_forgets_positions(patch: Patch) -> None:
    """Maintenance expires everything but the heads."""
    patch.setattr(
        World,
        "_expirable",
        lambda self, table: [number for number in table.snapshots if number not in table.refs.values()],
    )


def stream_stages_on_another_head(patch: Patch) -> None:
    """A stream is pulled from the positions of one head and staged on the next."""
    run = Flow._run_batch

    def elsewhere(self: Flow, base: Any, began: float, span: Any, *args: Any) -> Any:
        return run(self, self.writer.begin() if span.given is not None else base, began, span, *args)

    patch.setattr(Flow, "_run_batch", elsewhere)


def believe_the_answer(patch: Patch) -> None:
    """A catalog that says yes is taken at its word."""
    patch.setattr(Writer, "_confirm", lambda self, staged: None)


def believe_a_refusal(patch: Patch) -> None:
    """A catalog that says no is taken at its word: the batch is sent again, from where it began."""

    def publish(self: Writer, staged: Staged) -> Any:
        for _ in range(3):
            with suppress(Refused, OutcomeUnknown):
                self._store.fast_forward(self.branch, staged.snapshot.id, staged.base.main_version)
                return staged.snapshot
            again = replace(staged.base, main_version=self._store.main_version(), head=self._store.head().id)  # type: ignore[union-attr]
            rows = self._store.table.added(staged.snapshot.id)  # type: ignore[attr-defined]
            write = partial(MemoryStore(self._store.table).append, rows=rows)  # type: ignore[attr-defined]
            staged = self.stage(again, staged.stamp, write)
        raise Moved(self._store.name)

    patch.setattr(Writer, "publish", publish)


def any_batch_on_the_branch(patch: Patch) -> None:
    """What lies on the head is taken for this batch, also where the catalog only pretended to write it."""
    patch.setattr(Stamp, "marks", lambda self, snapshot: True)


def believe_the_removal(patch: Patch) -> None:
    """Letters that the catalog says are removed are not looked for."""
    patch.setattr(ModelLetters, "holds", lambda self, attempts: False)


MUTANTS = [
    append_to_main,
    no_alignment,
    lenient_stage,
    guess_published,
    only_the_head_counts,
    force_main,
    by_ancestry_alone,
    never_look_who_else,
    compaction_restamps,
    clear_open_letters,
    keep_every_letter,
    letters_after_the_batch,
    expiry_forgets_positions,
    stream_stages_on_another_head,
    believe_the_answer,
    believe_a_refusal,
    any_batch_on_the_branch,
    believe_the_removal,
]


# Only a write that comes late lays two attempts on top of each other: seldom in mixed weather.
WEATHER = {
    lenient_stage: lambda: Weather(faults=20, chance=0.5, kinds=("late",), where=("append.swap",), writers=1),
    no_alignment: lambda: Weather(faults=20, chance=0.5, kinds=("down",), where=("publish.before",), writers=1),
    any_batch_on_the_branch: lambda: _lying("point.swap", "append.swap", "publish.before"),
    believe_the_removal: lambda: _lying("append.swap", "publish.before"),
}


def _lying(*where: str) -> Weather:
    """A catalog that often says yes and does nothing, and batches that are given up in between."""
    return Weather(faults=30, chance=0.4, kinds=("yes",), where=where, writers=1)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_mutant_is_caught(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    for seed in range(1, MOST):
        try:
            run(seed, WEATHER[mutant]() if mutant in WEATHER else None)
        except (AssertionError, LodeError, Livelock):
            return
    pytest.fail(f"{mutant.__name__} got past {MOST} schedules")
