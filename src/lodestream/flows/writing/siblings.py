"""A keyed table and the tables beside it, as one batch after the other finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lodestream.flows.directory.directory import Addresses, DirectoryKeeper
from lodestream.flows.judging.terms import Terms
from lodestream.flows.writing.upserts import FeedWatch
from lodestream.names import IS_CURRENT, VALID_FROM, VALID_TO, feed_of, marks_of
from lodestream.tables.hidden import shown
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Snapshot
from lodestream.tables.store import TableStore


@dataclass(frozen=True, slots=True)
class Siblings:
    """`identity` tells the rows of the table apart, `columns` are the table's own, as declared."""

    lake: Lake
    table: str
    feed: str
    marks: str
    keys: tuple[str, ...]
    identity: tuple[str, ...]
    columns: tuple[str, ...]
    watch: FeedWatch
    directory: DirectoryKeeper
    marked: DirectoryKeeper

    @classmethod
    def of(cls, lake: Lake, terms: Terms, identity: Sequence[str]) -> Siblings:
        held = lake.whole(terms.name)
        addresses = Addresses.over(terms.keys, (), lake.whole(marks_of(terms.name)).schema)
        return cls(
            lake,
            terms.name,
            feed_of(terms.name),
            marks_of(terms.name),
            tuple(terms.keys),
            tuple(identity),
            tuple(shown(held).columns),
            FeedWatch.over(identity[0], terms.table.partition_by, held.schema),
            terms.directory,
            # Most batches then read none of the marks, however many there are.
            DirectoryKeeper(lake, marks_of(terms.name), addresses, fewest=1),
        )

    @property
    def own(self) -> list[str]:
        """The columns without those that a history adds."""
        return [one for one in self.columns if one not in (VALID_FROM, VALID_TO, IS_CURRENT)]


@dataclass(frozen=True, slots=True)
class Level:
    """Where a keyed table and its marks stand together: what a batch is built on.

    `steps` is how many feed snapshots were applied to get there.
    """

    state: Snapshot
    marks: Snapshot
    steps: int
    state_store: TableStore
    marks_store: TableStore
