"""A batch of a keyed table: which keys it changes, ordered per key, and written to the feed as weighted rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from pyspark.sql import Column, DataFrame, Observation, Row
from pyspark.sql.functions import col, collect_set, lit, struct, when

from lodestream.contracts.quoting import name as quoted
from lodestream.errors import AuditFailed
from lodestream.flows.batch import Batch, Facts
from lodestream.flows.judging.judge import deletes
from lodestream.flows.judging.judged_rows import JudgedRows, passed
from lodestream.flows.judging.truncates import Floor, floor_of
from lodestream.flows.letters.table import Lettered
from lodestream.flows.writing.siblings import Level, Siblings
from lodestream.flows.writing.upserts import AT, upserted
from lodestream.flows.writing.versions import versioned
from lodestream.names import BATCH, WEIGHT
from lodestream.tables.find import MOST_KEYS, quick_look, rows_of
from lodestream.tables.hidden import gathered
from lodestream.tables.notes import PREFIX
from lodestream.tables.snapshot import Snapshot, Stamp
from lodestream.tables.store import TableStore

_LISTED = "keys"
# A row without a day lies in no range of days, and more ranges than this are as slow as none.
_MOST_DAYS = 62
MakeRows = Callable[[DataFrame, DataFrame | None, DataFrame | None, Siblings], DataFrame]


class Changes(ABC):
    """Asked by a batch of a keyed table. `at` is the table that has applied the whole feed."""

    @property
    def claiming(self) -> Column | None:
        """Which judged rows bring their values to the table; None: all that pass."""
        return None

    def measures(self, rows: int) -> Sequence[Column]:
        """What the counting job shall tell beside the counts."""
        return ()

    @abstractmethod
    def rows(self, judged: JudgedRows, floor: Floor | None, at: Snapshot, number: int) -> DataFrame:
        """The changes that take part, each with its order key beside the table's columns."""

    @abstractmethod
    def most(self, judged: JudgedRows, floor: Floor | None, at: Snapshot) -> int:
        """How many keys may change, at most."""

    @abstractmethod
    def listed(self, judged: JudgedRows, floor: Floor | None) -> list[Row]:
        """The first column and the hashes of each changed key, when they are few; else none."""

    def near(self, rows: DataFrame, judged: JudgedRows, floor: Floor | None) -> DataFrame:
        """The stored rows among which the changed keys are."""
        return rows

    def letters(self, judged: JudgedRows, at: Snapshot) -> DataFrame:
        return judged.letters()

    def counts(self, judged: JudgedRows, at: Snapshot) -> dict[str, int]:
        return dict(judged.counts)

    @property
    def remembers(self) -> bool:
        """Whether changes come in any order: then those that no row shows must be remembered."""
        return True


def listing(siblings: Siblings, first: Column) -> list[Column]:
    kept = {"hash": siblings.directory.addresses, "mark": siblings.marked.addresses}
    hashes = [(one.hash() if one else lit(None).cast("bigint")).alias(name) for name, one in kept.items()]
    return [first.alias("first"), *hashes]


class JudgedChanges(Changes):
    """Each judged row is a change of its key; their order key decides, not the order in which they come."""

    def __init__(self, siblings: Siblings) -> None:
        self._siblings = siblings

    @property
    def claiming(self) -> Column:
        return passed() & ~deletes()

    def measures(self, rows: int) -> Sequence[Column]:
        if rows > MOST_KEYS or not self._siblings.watch.exact:
            return ()
        first = when(passed(), col(quoted(self._siblings.keys[0])))
        return (collect_set(when(first.isNotNull(), struct(*listing(self._siblings, first)))).alias(_LISTED),)

    def rows(self, judged: JudgedRows, floor: Floor | None, at: Snapshot, number: int) -> DataFrame:
        changes, siblings = judged.rows.where(passed()), self._siblings
        if floor is None:
            return changes
        stored = siblings.lake.whole(siblings.table, at.id) if at.total_rows else None
        return floor.under(changes, stored, siblings.keys)

    def most(self, judged: JudgedRows, floor: Floor | None, at: Snapshot) -> int:
        return judged.counts["kept"] + (at.total_rows if floor is not None and floor.moved else 0)

    def near(self, rows: DataFrame, judged: JudgedRows, floor: Floor | None) -> DataFrame:
        """In the partitions of the batch, as far as these are part of the key; else a key may lie anywhere."""
        everything = floor is not None and floor.moved
        return rows if everything else judged.near.only(rows, judged.seen)

    def listed(self, judged: JudgedRows, floor: Floor | None) -> list[Row]:
        everything = floor is not None and floor.moved  # a truncate touches every key
        return list(judged.seen[_LISTED]) if _LISTED in judged.seen and not everything else []


@dataclass(frozen=True, slots=True)
class Keeping:
    """What a keyed table keeps of its keys: how changes become feed rows, and how many of them a change makes at most
    where each key is held against that many truncates."""

    rows: MakeRows
    most_rows: Callable[[int], int]
    truncates: bool = False  # whether its source may tell of them
    every_truncate: bool = False  # whether each of them counts, not just the last


def last_of_each_key(*, truncates: bool = False) -> Keeping:
    return Keeping(lambda c, k, m, s: upserted(c, k, m, s.keys, s.columns), lambda _borders: 2, truncates)


def every_version(*, truncates: bool = False) -> Keeping:
    # A version is taken back and given again; the one before it ends earlier; and one may be a mark.
    return Keeping(
        lambda c, k, m, s: versioned(c, k, m, s.keys, s.own), lambda borders: 4 * (1 + borders), truncates, True
    )


class FeedBatch(Batch):
    """Built on a table that has applied its whole feed: `level` says which snapshots those are."""

    def __init__(
        self, rows: JudgedRows, changes: Changes, keeping: Keeping, siblings: Siblings, level: Level, lettered: Lettered
    ) -> None:
        self.judged = rows
        self._changes = changes
        self._keeping = keeping
        self._siblings = siblings
        self._level = level
        self._lettered = lettered
        self._facts: Facts | None = None
        try:
            self._floor = self._find_floor()
            self.counts = changes.counts(rows, level.state)
            self._most = changes.most(rows, self._floor, level.state)
        except BaseException:
            self.release()  # as in the judging itself: the batch does not exist yet
            raise

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        number, siblings = int(properties[PREFIX + "batch"]), self._siblings
        rows = self._rows(self._changes.rows(self.judged, self._floor, self._level.state, number))
        rows = self._floor.mark(rows) if self._floor else rows
        rows = rows.withColumn(BATCH, lit(number).cast("bigint"))
        told = Observation()
        entry = addresses.entry() if (addresses := siblings.directory.addresses) else None
        mark = addresses.hash() if (addresses := siblings.marked.addresses) else None
        watched = siblings.watch.columns(few=2 * self._most <= MOST_KEYS, at=AT, entry=entry, mark=mark)
        siblings.lake.append(siblings.feed, rows.observe(told, *watched).drop(AT), branch, properties)
        written = self._facts = siblings.watch.facts(told.get, self._level.state.id, self._level.marks.id)
        # The feed has two rows for an update: a reader of the table sees one that was written.
        deleted = written.gone - written.replacing
        self.counts = {**self.counts, "out": written.came, "upserted": written.came, "deleted": deleted}

    def audit(self, snapshot: Snapshot) -> None:
        self.judged.account()
        limits, counts = self.judged.terms.limits, self.counts
        if limits is not None and snapshot.stamp is not None:
            limits.check(self.judged.verdicts, snapshot.stamp.batch, counts["in"], counts["dead"])
        borders = self._floor.rows if self._floor is not None else 0
        if snapshot.added_rows > self._most * self._keeping.most_rows(borders) + borders:  # a truncate is a row, too
            raise AuditFailed(
                f"{self._siblings.feed}: {snapshot.added_rows:,} rows were written for {self._most:,} changes",
                why="the declared function gives other rows each time it runs (random values, the clock)",
                fix="make the function depend on its inputs alone",
            )

    def facts(self) -> Facts | None:
        return self._facts

    def notes(self) -> Mapping[str, str]:
        return self._lettered.notes()

    def tidy(self, *, lost: bool) -> None:
        self._lettered.tidy(lost=lost)

    def companions(self, stamp: Stamp, main_version: str) -> None:
        if self.counts["dead"]:
            self._lettered.publish(self._changes.letters(self.judged, self._level.state), stamp, main_version)

    def release(self) -> None:
        self.judged.release()

    def _find_floor(self) -> Floor | None:
        siblings, at = self._siblings, self._level.marks
        if not self._keeping.truncates:
            return None
        marks = siblings.lake.whole(siblings.marks, at.id) if at.total_rows else None
        return floor_of(self.judged.rows, marks, siblings.keys, every=self._keeping.every_truncate)

    def _rows(self, changes: DataFrame) -> DataFrame:
        """The feed rows that the changes make of what is stored."""
        rows = self._keeping.rows(changes, self._known(changes), self._remembered(changes), self._siblings)
        return rows if self._changes.remembers else rows.where(col(WEIGHT) != 0)

    def _remembered(self, changes: DataFrame) -> DataFrame | None:
        """The marks of the changed keys; None when there are surely none, as for most batches."""
        at, siblings, listed = self._level.marks, self._siblings, self._listed
        if at.total_rows == 0 or self._most == 0:
            return None
        directory = siblings.marked.at(at, _before(at, self._level.marks_store)) if listed else None
        if directory is not None:
            there, _ = directory.find([one["mark"] for one in listed])
            listed = [one for one, found in zip(listed, there, strict=True) if found]
            if not listed:
                return None
        rows = siblings.lake.whole(siblings.marks, at.id, quick_look(at, self._cores))
        return rows_of(self._near(rows), siblings.keys, changes, list({one["first"] for one in listed}))

    def _known(self, changes: DataFrame) -> DataFrame | None:
        """The table's own rows of the changed keys, and where they lie."""
        at, siblings, listed = self._level.state, self._siblings, self._listed
        if at.total_rows == 0 or self._most == 0:
            return None
        rows = siblings.lake.whole(siblings.table, at.id, quick_look(at, self._cores))
        rows = rows.select("*", struct(col("_file").alias("file"), col("_pos").alias("pos")).alias(AT))
        rows = self._near(gathered(rows))
        directory = siblings.directory.at(at, _before(at, self._level.state_store)) if listed else None
        if directory is None:
            return rows_of(rows, siblings.keys, changes, list({one["first"] for one in listed}))
        there, days = directory.find([one["hash"] for one in listed])
        firsts = {one["first"] for one, found in zip(listed, there, strict=True) if found}
        if not firsts:
            return None
        rows = directory.addresses.on(rows, days) if len(days) <= _MOST_DAYS else rows
        return rows_of(rows, siblings.keys, changes, list(firsts))

    def _near(self, rows: DataFrame) -> DataFrame:
        return self._changes.near(rows, self.judged, self._floor)

    @cached_property
    def _listed(self) -> list[Row]:
        return self._changes.listed(self.judged, self._floor)

    @property
    def _cores(self) -> int:
        return int(self._siblings.lake.spark.sparkContext.defaultParallelism)


def _before(at: Snapshot, store: TableStore) -> Iterator[Snapshot]:
    """The snapshots before this one, newest first."""
    return islice(store.ancestors(at), 1, None)
