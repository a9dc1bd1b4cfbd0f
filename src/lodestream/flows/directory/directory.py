"""Which keys a table holds and on which days they lie, in memory: a new key then costs no search in any file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import chain
from threading import Thread

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit, xxhash64
from pyspark.sql.types import DateType, StructType, TimestampNTZType, TimestampType

from lodestream.contracts.quoting import name as quoted
from lodestream.flows.batch import Facts
from lodestream.flows.columns.pruning import before, day_number, on_days
from lodestream.flows.columns.shape import partition_columns
from lodestream.tables.find import EXACT
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Snapshot

log = logging.getLogger(__name__)

# Eight bytes a row: beyond this many the table is searched with the filters of its files.
MOST_ROWS = 20_000_000
# Below, a search costs no more than asking here.
FEWEST_ROWS = 50_000
# So many are kept apart: putting a few among millions costs as much as putting many.
_MOST_RECENT = 200_000
# 48 bits of a hash beside 16 of a day: among ten million keys, one new key in thirty million is taken for an old one.
_DAY, _HASH = 0xFFFF, -0x1_0000
# Days from 1880 to 2059 have a number of their own; rows without a day are one more, and all other days another.
_NO_DAY, _FIRST_DAY, _FAR = -(2**15), -(2**15) + 1, 2**15 - 1
# A look at every key is not for a run that comes once: so many small batches come first.
CALM = 3
Entries = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Addresses:
    """How rows are noted: a hash of the key, or most of it beside the day that the table is partitioned by."""

    keys: tuple[tuple[str, str], ...]
    day: str | None
    kind: str = "date"

    @classmethod
    def over(cls, keys: Sequence[str], partition_by: Sequence[str], schema: StructType) -> Addresses | None:
        """None when equal keys might have different hashes, as numbers that are no whole ones do."""
        kinds = {field.name: field.dataType for field in schema}
        if not all(isinstance(kinds[key], EXACT) for key in keys):
            return None
        days = [
            one.column
            for one in partition_columns(partition_by, schema.names)
            if isinstance(kinds[one.column], (DateType, TimestampType, TimestampNTZType))
        ]
        noted = tuple((key, kinds[key].simpleString()) for key in keys)
        return cls(noted, days[0], kinds[days[0]].simpleString()) if days else cls(noted, None)

    def hash(self) -> Column:
        whole = xxhash64(*[col(quoted(key)).cast(kind) for key, kind in self.keys])
        return whole if self.day is None else whole.bitwiseAND(lit(_HASH))

    def entry(self) -> Column:
        if self.day is None:
            return self.hash()
        number = day_number(quoted(self.day), self.kind)
        known = f"CASE WHEN {number} >= {_FIRST_DAY} AND {number} < {_FAR} THEN {number} ELSE {_FAR} END"
        day = expr(f"CASE WHEN {quoted(self.day)} IS NULL THEN {_NO_DAY} ELSE {known} END").cast("bigint")
        return self.hash().bitwiseOR(day.bitwiseAND(lit(_DAY)))

    def on(self, rows: DataFrame, days: Sequence[int]) -> DataFrame:
        """The rows of these days, as entries tell them: Iceberg skips the files of all others."""
        if self.day is None or not days:
            return rows
        own = [day for day in days if _FIRST_DAY <= day < _FAR]
        found = [on_days(self.day, self.kind, own)] if own else []
        if _NO_DAY in days:
            found.append(f"{quoted(self.day)} IS NULL")
        if _FAR in days:
            near = before(self.day, self.kind, _FIRST_DAY), before(self.day, self.kind, _FAR)
            found.append(f"({near[0]} OR NOT {near[1]})")
        return rows.where(" OR ".join(found))


class KeyDirectory:
    """Holds at least every key of the table at snapshot `state`; keys that are gone stay, and cost a search."""

    def __init__(self, addresses: Addresses, entries: NDArray[np.int64], state: int) -> None:
        self._entries: Entries = np.unique(entries.view(np.uint64))
        self._recent: Entries = self._entries[:0]
        self.addresses = addresses
        self.state = state

    @classmethod
    def of(cls, addresses: Addresses, rows: DataFrame, state: int) -> KeyDirectory:
        found = rows.select(addresses.entry().alias("entry")).toArrow().column("entry")
        return cls(addresses, found.to_numpy(), state)

    def find(self, hashes: Sequence[int], *, any_day: bool = True) -> tuple[list[bool], list[int]]:
        """Which of the hashes may be there, and the days on which they may lie; or, not on any day, which entries."""
        low = _unsigned(hashes)
        high = low | np.uint64(_DAY) if any_day and self.addresses.day is not None else low
        there, days = np.zeros(len(low), dtype=np.bool_), set[int]()
        for entries in (self._entries, self._recent):
            first = np.searchsorted(entries, low)
            last = np.searchsorted(entries, high, side="right")
            there |= last > first
            for start, end in zip(first[last > first], last[last > first], strict=True):
                days.update((entries[start:end] & np.uint64(_DAY)).astype(np.uint16).view(np.int16).tolist())
        return there.tolist(), sorted(days)

    def follow(self, came: Iterable[int], state: int) -> None:
        """The table has applied these rows as well, and is now at another snapshot."""
        self.state = state
        self._recent = np.union1d(self._recent, _unsigned(list(came)))
        if len(self._recent) > _MOST_RECENT:
            self._entries, self._recent = np.union1d(self._entries, self._recent), self._entries[:0]


def _unsigned(numbers: Sequence[int]) -> Entries:
    return np.array(numbers, dtype=np.int64).view(np.uint64)


Making = Future[KeyDirectory]


class DirectoryKeeper:
    """Keeps a directory at the table's head: made beside the batches, then brought up to date by them.

    None of its failures is one of the table's: without a directory, keys are searched in the files.
    """

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
        for since, entries, after in self._trail:
            if since == self._directory.state:
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
