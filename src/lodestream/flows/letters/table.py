"""Dead letters: every row that may not enter a table, with its raw bytes, coordinates and reasons."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

from pyspark.sql import DataFrame
from pyspark.sql.functions import col

from lodestream.errors import CatalogUnavailable, LodeError
from lodestream.failpoints import reach
from lodestream.flows.letters.attempts import BESIDE, Verdict, judge_letters
from lodestream.flows.letters.envelope import DDL, decided, refused
from lodestream.names import dead_of
from lodestream.tables.jvm import catalog_errors
from lodestream.tables.lake import Lake
from lodestream.tables.notes import ATTEMPT, BASE, OWN, SETTLED
from lodestream.tables.publish import Writer, until_published
from lodestream.tables.snapshot import Stamp
from lodestream.tables.store import TableStore


@dataclass(frozen=True, slots=True)
class Survey:
    """A snapshot of the dead-letter table, and the attempts in it that may not count."""

    snapshot: int
    undecided: frozenset[str]


Append = Callable[[Stamp, str | None, str, Mapping[str, str]], None]


class DeadLetters:
    """The dead-letter table of one flow. A letter is what its last row says: open, then replayed or discarded.

    Published before the batch it belongs to, so that no row can vanish. The batch's own snapshot names the attempt
    whose letters it goes with; letters of attempts that can no longer be published are removed.
    """

    def __init__(self, lake: Lake, table: str, run: str, *, guest: bool = False) -> None:
        self.name = dead_of(table)
        self._guest = guest
        self._lake = lake
        self._table = table
        self._run = run
        self._writer: Writer | None = None
        self._own: str | None = None
        self._verdict = Verdict()

    def settle(self, main: TableStore) -> None:
        """Remove letters of attempts that `main` does not know and can never learn of: crashed, lost, rolled back."""
        self._own = None
        if self._writer is None and not self.exists():
            return
        orphans = self._orphans(main)
        if orphans:
            self.remove(orphans)
            if self.holds(orphans):
                raise CatalogUnavailable(
                    f"{self.name}: letters that were removed are still there",
                    why="the catalog said that the removal is committed, and the table does not show it",
                    fix="if it goes on: look at the catalog's own log and storage",
                )

    def survey(self, main: TableStore) -> Survey:
        """The letters as they are now, and which of them are not decided yet."""
        orphans = self._orphans(main)
        head = self._open().store.head()
        return Survey(head.id if head else 0, frozenset({*orphans, *self._verdict.open}))

    def decided_since(self, snapshot: int) -> bool:
        """Whether another run has replayed letters since that snapshot of the dead letters."""
        store = self._open().store
        store.refresh()
        for one in takewhile(lambda found: found.id != snapshot, store.ancestors(store.head())):
            if one.stamp is not None and one.stamp.guest and one.stamp.run != self._run:
                return True
        return False

    def _orphans(self, main: TableStore) -> set[str]:
        store = self._open().store
        # In this order: whatever head a letter was built on, the table has had it by the time we look there.
        store.refresh()
        main.refresh()
        self._verdict = judge_letters(store, main, OWN, SETTLED)
        return {*self._verdict.orphans, *self._expired_orphans(store, self._verdict)}

    def tidy(self, main: TableStore, *, lost: bool) -> None:
        """Once the batch is published, attempts that were open before are decided; once it is lost, ours is."""
        if self._verdict.open or lost:
            with suppress(LodeError):  # the next batch settles again
                self.settle(main)

    def attestation(self) -> dict[str, str]:
        """What the batch's snapshot says of its dead letters."""
        own = {OWN: self._own} if self._own else {}
        settled = {SETTLED: str(self._verdict.settled)} if self._verdict.settled is not None else {}
        return {**own, **settled}

    def publish(self, letters: DataFrame, stamp: Stamp, main_version: str, contract: str | None) -> None:
        """Commit the letters of a batch that builds on `main_version` of its table."""
        self._commit(partial(self.append, letters), stamp, main_version, contract)

    def decide(self, letters: DataFrame, stamp: Stamp, main_version: str, contract: str | None) -> None:
        """Commit that a batch which builds on `main_version` replays these letters: void unless it is published."""
        self._commit(partial(self.append_decisions, letters, "replayed", None), stamp, main_version, contract)

    def discard(self, letters: DataFrame, note: str | None) -> None:
        """Commit that these letters need no replay. No batch goes with it, so nothing can make it void."""
        stamp = Stamp(self._table, self._run, 0, {}, None)
        self.create()
        with catalog_errors(f"writing {self.name}"):
            decided(letters, stamp, None, "discarded", note).writeTo(self._lake.identifier(self.name)).append()

    def _commit(self, append: Append, stamp: Stamp, main_version: str, contract: str | None) -> None:
        def attempt() -> str:
            # Each attempt has its own name: one whose answer was lost may still land, beside the next.
            name = uuid.uuid4().hex[:12]
            marked = replace(stamp, notes={**stamp.notes, ATTEMPT: name, BASE: main_version})
            writer = self._open()
            staged = writer.stage(writer.begin(), marked, partial(append, marked, contract))
            reach("dead.staged", self._table)
            writer.publish(staged)
            return name

        self._own = until_published(self.name, attempt, most=5, why="it was changed five times in a row")

    def exists(self) -> bool:
        return self._lake.exists(self.name)

    def create(self) -> TableStore:
        store = self._lake.open(self.name, DDL)
        if BESIDE not in self._lake.whole(self.name).columns:  # made before there was such a column
            with catalog_errors(f"adding {BESIDE} to {self.name}"):
                self._lake.spark.sql(f"ALTER TABLE {self._lake.identifier(self.name)} ADD COLUMN {BESIDE} INT")
            store.refresh()
        return store

    def append(
        self, letters: DataFrame, stamp: Stamp, contract: str | None, branch: str, properties: Mapping[str, str]
    ) -> None:
        self._lake.append(self.name, refused(letters, stamp, contract), branch, properties)

    def append_decisions(
        self,
        letters: DataFrame,
        state: str,
        note: str | None,
        stamp: Stamp,
        contract: str | None,
        branch: str,
        properties: Mapping[str, str],
    ) -> None:
        self._lake.append(self.name, decided(letters, stamp, contract, state, note), branch, properties)

    def remove(self, attempts: Iterable[str]) -> None:
        # Attempts are named by us, so no quoting can be broken; and short, so that whole files go at once.
        names = ", ".join(f"'{one}'" for one in sorted(attempts))
        with catalog_errors(f"clearing {self.name}"):
            self._lake.spark.sql(f"DELETE FROM {self._lake.identifier(self.name)} WHERE attempt IN ({names})")  # noqa: S608

    def holds(self, attempts: Iterable[str]) -> bool:
        """Whether there is a letter of these attempts: once they are settled, nobody looks for them again."""
        held = self._lake.whole(self.name).where(col("attempt").isin(*attempts))
        return bool(held.limit(1).count())

    def attempts_after(self, batch: int, snapshot: int) -> set[str]:
        """From the rows of one snapshot: letters that came later are not ours to judge now."""
        later = self._lake.whole(self.name, snapshot).where(col("batch") > batch)
        return {row.attempt for row in later.select("attempt").distinct().collect()}

    def _expired_orphans(self, store: TableStore, verdict: Verdict) -> set[str]:
        head = store.head()
        if verdict.beyond is None or head is None:
            return set()
        return self.attempts_after(verdict.beyond, head.id) - set(verdict.open)

    def leave(self) -> None:
        """Drop the branch of a guest, who comes once."""
        if self._writer is not None:
            self._writer.store.drop(self._writer.branch)

    def _open(self) -> Writer:
        if self._writer is None:
            writer = Writer(self.create(), self._run, alone=False)
            if not self._guest:
                writer.sweep()
            self._writer = writer
        return self._writer


@dataclass(frozen=True, slots=True)
class Lettered:
    """The dead-letter table beside the one that decides which attempt counts, `main`."""

    dead: DeadLetters
    main: TableStore
    contract: str | None

    def settle(self) -> None:
        self.dead.settle(self.main)

    def publish(self, letters: DataFrame, stamp: Stamp, main_version: str) -> None:
        self.dead.publish(letters, stamp, main_version, self.contract)

    def notes(self) -> Mapping[str, str]:
        return self.dead.attestation()

    def tidy(self, *, lost: bool) -> None:
        self.dead.tidy(self.main, lost=lost)
