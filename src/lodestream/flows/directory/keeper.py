"""Keeps a directory of a table's keys at the table's head: made beside the batches, then brought up to date by them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from itertools import chain
from threading import Thread

from pyspark.sql import SparkSession

from lodestream.flows.directory.directory import FEWEST_ROWS, MOST_ROWS, Addresses, KeyDirectory
from lodestream.flows.facts import Facts
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Snapshot

log = logging.getLogger(__name__)

# A look at every key is not for a run that comes once: so many small batches come first.
CALM = 3
Making = Future[KeyDirectory]


class DirectoryKeeper:
    """None of its failures is one of the table's: without a directory, keys are searched in the files."""

    def __init__(self, lake: Lake, table: str, addresses: Addresses | None, *, fewest: int | None = None) -> None:
        """`fewest` rows a table has for which this is worth it."""
        self._lake = lake
        self._table = table
        self.addresses = addresses
        self._fewest = FEWEST_ROWS if fewest is None else fewest
        self._batches = 0
        self._directory: KeyDirectory | None = None
        self._making: Making | None = None
        self._session: SparkSession | None = None
        # What was applied while the directory was being made: (snapshot before, entries, snapshot after).
        self._trail: list[tuple[int, tuple[int, ...], int]] = []

    def at(self, state: Snapshot, before: Iterable[Snapshot] = ()) -> KeyDirectory | None:
        """The keys of the table at this snapshot, when they are known; `before` are its ancestors, newest first."""
        self._take_over()
        self._pass_over(state, before)
        if self._directory is not None and self._directory.state != state.id:
            self._directory = None  # another run, a rollback, maintenance: nobody told what they changed
        addresses = self.addresses
        if self._directory is None and self._making is None and addresses is not None:
            self._batches += 1
            if self._batches >= CALM and self._fewest <= state.total_rows <= MOST_ROWS:
                self._batches, self._trail = 0, []
                self._making = beside(partial(self._made, addresses, state.id))
                self._take_over()
        return self._directory

    def follow(self, facts: Facts, state: Snapshot) -> None:
        """A batch of ours was applied, and made this snapshot."""
        if facts.state is None or facts.state != state.parent or len(facts.entries) != facts.came:
            return  # the directory stays behind, and is noticed to be
        if self._directory is not None and self._directory.state == facts.state:
            self._directory.follow(facts.entries, state.id)
        elif self._making is not None:
            self._trail.append((facts.state, facts.entries, state.id))

    def _made(self, addresses: Addresses, state: int) -> KeyDirectory:
        # One for all: each opens the catalog anew, and never gives the connection back.
        self._session = self._session or _own_session(self._lake.spark)
        lake = Lake(self._session, self._lake.catalog)
        return KeyDirectory.of(addresses, lake.whole(self._table, state), state)

    def _pass_over(self, state: Snapshot, before: Iterable[Snapshot]) -> None:
        """Compaction and deletes on top bring no key that is not here."""
        known = self._directory
        if known is None or known.state == state.id:
            return
        for snapshot in chain((state,), before):
            if snapshot.id == known.state:
                known.follow((), state.id)
                break
            if snapshot.operation != "replace" and snapshot.added_rows:
                break

    def _take_over(self) -> None:
        if self._making is None or not self._making.done():
            return
        making, self._making = self._making, None
        error = making.exception()
        if error is not None:
            log.warning("directory.failed table=%s why=%s", self._table, error)
            return
        self._directory = making.result()
        for before, entries, after in self._trail:
            if before == self._directory.state:
                self._directory.follow(entries, after)


def _own_session(spark: SparkSession) -> SparkSession:
    """This is no small batch, so it cannot have the flow's settings; but it has the flow's catalogs."""
    session = spark.newSession()
    for key, value in spark.conf.getAll.items():
        if key.startswith("spark.sql.catalog."):
            session.conf.set(key, value)
    return session


def beside(make: Callable[[], KeyDirectory]) -> Making:
    """Run it in a thread that holds nobody up at the end."""
    made: Making = Future()

    def work() -> None:
        try:
            made.set_result(make())
        except Exception as error:
            made.set_exception(error)

    Thread(target=work, name="lode-directory", daemon=True).start()
    return made
