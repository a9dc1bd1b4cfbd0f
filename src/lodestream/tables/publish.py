"""The one rule: a published snapshot says exactly which input it contains, and one writer publishes the next.

A batch goes through `begin`, `stage`, `audit` (the flow's own) and `publish`; each is one function here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lodestream.errors import AnotherWriter, CatalogUnavailable, OutcomeUnknown
from lodestream.failpoints import reach
from lodestream.tables.snapshot import Snapshot, Stamp
from lodestream.tables.store import MAIN, Refused, TableStore, contains, last_kept, last_stamped

log = logging.getLogger(__name__)

T = TypeVar("T")

BRANCH_PREFIX = "lode_"
FAILED_PREFIX = "failed_"


class Moved(CatalogUnavailable):
    """Maintenance moved `main` while we staged: redo the batch on the new head."""


# Maintenance may move `main` under a batch now and then; losing to it this often means something is wrong.
MOST_REDOS = 20


def until_published(
    table: str,
    attempt: Callable[[], T],
    *,
    most: int = MOST_REDOS,
    why: str = "maintenance or a rollback changed the table each time before the batch could be published",
    fix: str | None = None,
    pause: Callable[[int], None] = lambda _tries: None,
) -> T:
    """An attempt that maintenance, a guest or a rollback overtook is made again, on the new head: the one redo loop."""
    for tries in range(most):
        try:
            return attempt()
        except Moved as moved:
            last = moved
        pause(tries)
    raise CatalogUnavailable(
        f"{table} moved under {most} attempts at one batch", why=last.why or why, fix=last.fix or fix
    )


class NotCommitted(Moved):
    """The catalog said that it had published a batch, and `main` does not reach it: redo it on the head there is."""


@dataclass(frozen=True, slots=True)
class Base:
    """What a batch builds on."""

    head: int
    main_version: str
    stamp: Stamp | None


@dataclass(frozen=True, slots=True)
class Staged:
    base: Base
    snapshot: Snapshot
    stamp: Stamp


class Writer:
    """Publishes the batches of one run to one table.

    `alone=False` is for a guest, and for a sibling table such as dead letters: there the main table decides which run
    goes on.
    """

    def __init__(self, store: TableStore, run: str, *, patience: float = 60.0, alone: bool = True) -> None:
        self._store = store
        self._run = run
        self._patience = patience
        self._alone = alone
        self._published: Snapshot | None = None
        self._unresolved: Snapshot | None = None
        self.branch = BRANCH_PREFIX + run

    @property
    def store(self) -> TableStore:
        return self._store

    def begin(self, *, adopt: bool = False) -> Base:
        """Where am I? Reads `main` anew, so progress that anyone rolled back or advanced is seen."""
        self._store.refresh()
        head = self._store.head()
        if head is None:
            raise CatalogUnavailable(
                f"{self._store.name} has no snapshot",
                why="its creation was interrupted between the table and its first, empty snapshot",
                fix="retry: creation completes itself",
            )
        stamped = None if adopt else last_stamped(self._store)
        self._still_alone(None if adopt else last_kept(self._store))
        return Base(head.id, self._store.main_version(), stamped.stamp if stamped else None)

    def stage(self, base: Base, stamp: Stamp, write: Callable[[str, dict[str, str]], None]) -> Staged:
        """Write the batch to this run's branch; nobody sees it yet."""
        self._align(base)
        reach("stage.before", self._store.name)
        self._write(stamp, write)
        reach("stage.after", self._store.name)
        self._store.refresh()
        snapshot = self._store.ref(self.branch)
        if snapshot is None or snapshot.parent != base.head or not stamp.marks(snapshot):
            # Another run swept our branch away: before the write, which then began a new one at another head, or
            # after it. Or a write of an earlier attempt came late, or is still there because the catalog has said yes
            # to this one and done nothing. Nothing is published, redo.
            raise Moved(self._store.name)
        staged = Staged(base, snapshot, stamp)
        if self._store.main_version() != base.main_version:
            # Publishing would be refused: no need to audit first.
            self._explain_refusal(staged)
        return staged

    def publish(self, staged: Staged) -> Snapshot:
        """Fast-forward `main`; whatever the answer is, what the table says counts."""
        reach("publish.before", self._store.name)
        self._unresolved = staged.snapshot
        try:
            self._store.fast_forward(self.branch, staged.snapshot.id, staged.base.main_version)
            reach("publish.after", self._store.name)
        except Refused:
            self._explain_refusal(staged)
        except OutcomeUnknown:
            self._resolve(staged)
        else:
            self._confirm(staged)
        self._published, self._unresolved = staged.snapshot, None
        return staged.snapshot

    def keep_for_inspection(self, staged: Staged) -> str:
        """A batch that failed its audit stays readable on a branch of its own."""
        branch = f"{FAILED_PREFIX}{staged.stamp.batch}"
        self._store.point(branch, staged.snapshot.id)
        return branch

    def sweep(self) -> list[str]:
        """Drop the branches of other runs. A live one merely has to stage again; a dead one leaves no litter."""
        litter = [b for b in self._store.branches() if b.startswith(BRANCH_PREFIX) and b != self.branch]
        for branch in litter:
            self._store.drop(branch)
        return litter

    def _still_alone(self, stamped: Snapshot | None) -> None:
        """Once we have published, progress by another run means that two drivers keep this table."""
        if self._unresolved is not None and contains(self._store, self._unresolved.id):
            self._published = self._unresolved
        self._unresolved = None
        if stamped is not None and stamped.stamp is not None and stamped.stamp.run == self._run:
            self._published = stamped
        mine = self._published
        if mine is None or not self._alone or (stamped is not None and stamped.id == mine.id):
            return
        if stamped is None or any(earlier.id == stamped.id for earlier in self._store.remembered(mine)):
            self._published = stamped  # rolled back by an operator: go on from there
        elif stamped.stamp is not None and stamped.stamp.run != self._run:
            raise another_writer(self._store.name, self._run, stamped.stamp)

    def _write(self, stamp: Stamp, write: Callable[[str, dict[str, str]], None]) -> None:
        try:
            write(self.branch, stamp.properties())
        except Exception as error:
            self._store.refresh()
            if self._store.ref(self.branch) is None:
                raise Moved(self._store.name) from error  # swept away before the write could begin
            raise

    def _align(self, base: Base) -> None:
        at = self._store.ref(self.branch)
        if at is None or at.id != base.head:
            self._store.point(self.branch, base.head)

    def _explain_refusal(self, staged: Staged) -> None:
        self._store.refresh()
        if contains(self._store, staged.snapshot.id):
            return
        current = last_kept(self._store)
        ours = {snapshot.id for snapshot in self._store.remembered(staged.snapshot)}
        if current is None or current.id in ours:
            # Maintenance or a guest on top of what we built on, or a rollback: no other run made progress.
            raise Moved(self._store.name)
        if not self._alone or (current.stamp is not None and current.stamp.run == self._run):
            # A sibling of the main table, or our own publication whose answer was lost and that landed late.
            raise Moved(self._store.name)
        raise another_writer(self._store.name, self._run, current.stamp)

    def _confirm(self, staged: Staged) -> None:
        """A catalog may say yes and have committed nothing: its word alone would lose the batch.

        The next batch would read the table anyway, so this costs one more question to the catalog.
        """
        self._reload()
        if contains(self._store, staged.snapshot.id):
            return
        log.warning("publish.unconfirmed table=%s snapshot=%s", self._store.name, staged.snapshot.id)
        try:
            self._explain_refusal(staged)
        except Moved as moved:
            raise NotCommitted(
                f"{self._store.name}: the catalog said that batch {staged.stamp.batch} is published, and it is not",
                why=f"main of the table does not reach snapshot {staged.snapshot.id}: the catalog answered without "
                "having committed, or the table was rolled back in the same moment",
                fix="if it goes on: look at the catalog's own log and storage; the batch is made again",
            ) from moved

    def _resolve(self, staged: Staged) -> None:
        """Never guess: published if and only if `main` reaches our snapshot."""
        self._reload()
        log.warning("publish.resolved table=%s snapshot=%s", self._store.name, staged.snapshot.id)
        self._explain_refusal(staged)

    def _reload(self) -> None:
        """A commit was sent: what became of it must be read, so a catalog that is away is waited for."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                self._store.refresh()
                return
            except CatalogUnavailable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(min(1.0, self._patience / 10))


def another_writer(table: str, run: str, current: Stamp | None) -> AnotherWriter:
    other = current.run if current else "unknown"
    return AnotherWriter(
        f"{table} was advanced by another run, {other}",
        why=f"two drivers keep the same table; run {run} lost the race and published nothing",
        fix="stop one of the two, or split the pipeline between them with --only",
    )


__all__ = [
    "BRANCH_PREFIX",
    "MAIN",
    "MOST_REDOS",
    "Base",
    "Moved",
    "Staged",
    "Writer",
    "another_writer",
    "until_published",
]
