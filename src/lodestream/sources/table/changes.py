"""A keyed table as input: its change feed, as far as the table has applied it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import col

from lodestream.errors import SourceRewritten
from lodestream.names import BATCH, ORDER, WEIGHT, feed_of
from lodestream.sources.source import Position
from lodestream.sources.table.inputs import AppendedRows, TableInput, WholeTable
from lodestream.tables.feed import applied, state_at
from lodestream.tables.hidden import shown
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Snapshot


class KeyedChanges(TableInput):
    """Position: `{"uuid": feed uuid, "snapshot": feed snapshot}`; snapshot None is before everything.

    `latest` is the position that the table has applied, so that its rows (`now`) and its changes always agree.
    """

    retracts = True
    estimates = True  # marks are among the feed's rows, and are nobody's input

    def __init__(self, lake: Lake, name: str) -> None:
        super().__init__(lake, name)
        self.feed = feed_of(name)
        self._changes = AppendedRows(lake, self.feed)

    def latest(self) -> Position | None:
        store = self._open()
        head = self._changes.latest() if store is not None else None
        if store is None or head is None:
            return None
        return applied(store, self.feed) or {"uuid": head["uuid"], "snapshot": None}

    def check(self, since: Position, latest: Position) -> None:
        if since["snapshot"] is not None and latest["snapshot"] is None:
            latest = self._changes.latest() or latest
        if latest["snapshot"] is not None:
            self._changes.check(since, latest)
            self._changes.untouched(since, latest)  # a feed is the truth of its table: nobody may change its past

    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        return latest if latest["snapshot"] is None else self._changes.cap(since, latest, rows)

    def pending(self, since: Position, to: Position) -> int:
        return 0 if to["snapshot"] is None else self._changes.pending(since, to)

    def read(self, since: Position, to: Position) -> DataFrame:
        return self.batches(since, to)

    def changes(self, since: Position, to: Position) -> DataFrame:
        """What came and went, `_weight` beside the table's columns."""
        return self.batches(since, to).drop(BATCH)

    def batches(self, since: Position, to: Position) -> DataFrame:
        """The same with the number of the batch that changed each row, in `_batch`."""
        if to["snapshot"] is None:
            return self._lake.whole(self.feed).drop(ORDER).limit(0)
        return self._changes.read(since, to).where(col(WEIGHT) != 0).drop(ORDER)

    def now(self, to: Position) -> DataFrame:
        if to["snapshot"] is None:
            return shown(self._lake.whole(self.name)).limit(0)
        return shown(self._lake.whole(self.name, self._state(to).id))

    def identities(self, to: Position) -> dict[str, int]:
        return self._loaded().field_ids(None)

    def shape(self, to: Position) -> object:
        return self._changes.shape(to)  # the feed gets a new column before the rows that have it

    def rows_at(self, to: Position) -> int:
        return 0 if to["snapshot"] is None else self._state(to).total_rows

    def asof(self, to: Position) -> float | None:
        return None if to["snapshot"] is None else self._changes.asof(to)

    def _state(self, to: Mapping[str, Any]) -> Snapshot:
        found = state_at(self._loaded(), self.feed, to["snapshot"])
        if found is None:
            raise SourceRewritten(
                f"{self.name} can no longer be read as of feed snapshot {to['snapshot']}",
                why="the snapshot of the table that held exactly these changes has expired",
                fix="rebuild the reading table, or keep snapshots longer than its readers lag behind",
            )
        return found


class KeyedWhole(WholeTable):
    """All rows of a keyed table, as a lookup sees them."""

    def read(self, since: Position, to: Position) -> DataFrame:
        return shown(super().read(since, to))
