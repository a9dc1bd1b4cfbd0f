"""Where a keyed table and its marks stand together: what a batch is built on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from lodestream.tables.snapshot import Snapshot
from lodestream.tables.store import TableStore


@dataclass(frozen=True, slots=True)
class Level:
    """`steps` is how many feed snapshots were applied to get there."""

    state: Snapshot
    marks: Snapshot
    steps: int
    state_store: TableStore
    marks_store: TableStore

    def before(self) -> Iterator[Snapshot]:
        """The table's snapshots before this one, newest first."""
        return islice(self.state_store.ancestors(self.state), 1, None)

    def before_marks(self) -> Iterator[Snapshot]:
        return islice(self.marks_store.ancestors(self.marks), 1, None)
