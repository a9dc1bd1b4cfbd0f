"""Which keys a batch of a keyed table changes, and the rows that they have then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql.functions import col, collect_set, lit, struct, when

from lodestream.contracts.quoting import name as quoted
from lodestream.flows.judging.judged_rows import JudgedRows, passed
from lodestream.flows.judging.ordering import deletes
from lodestream.flows.judging.truncates import Floor
from lodestream.flows.writing.siblings import Siblings
from lodestream.tables.find import MOST_KEYS
from lodestream.tables.snapshot import Snapshot

_LISTED = "keys"


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
        """The changes that take part, each with its place in the order beside the table's columns."""

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
    """Each judged row is a change of its key; their place in the order decides, not the order in which they come."""

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
