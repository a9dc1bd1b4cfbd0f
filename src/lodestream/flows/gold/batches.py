"""The ways a Gold batch is written, each in one commit: all rows, only new ones, the rows of some keys, none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, expr

from lodestream.flows.batch import Batch
from lodestream.names import STATE_COLUMN
from lodestream.pipeline.gold.pieces import quoted
from lodestream.tables.lake import Lake
from lodestream.tables.notes import DEFINITION, PARTS, REFUSED, TRIED
from lodestream.tables.replace import replace_rows
from lodestream.tables.reshape import overwrite_reshaped
from lodestream.tables.snapshot import Snapshot
from lodestream.tables.store import TableStore

if TYPE_CHECKING:
    from lodestream.flows.gold.table import GoldTable


class GoldBatch(Batch):
    """Says which query its rows came from: rows of another one must not be added to."""

    def __init__(self, gold: GoldTable, read: int) -> None:
        self.counts: Mapping[str, int] = {"in": read}
        self._gold = gold

    def notes(self) -> Mapping[str, str]:
        refused = {REFUSED: self._gold.refused} if self._gold.refused else {}
        tried = {TRIED: "yes"} if self._gold.tried else {}
        return {DEFINITION: self._gold.definition, PARTS: self._gold.parts, **refused, **tried}

    def audit(self, snapshot: Snapshot) -> None:
        if self._gold.promises is not None:
            self.counts = {**self.counts, **self._gold.promises.hold(snapshot)}


class OverwriteBatch(GoldBatch):
    """All rows of the table, replaced in one atomic step."""

    def __init__(self, gold: GoldTable, rows: DataFrame, read: int, *, rebuilt: bool = False) -> None:
        super().__init__(gold, read)
        self._rows = rows
        self._rebuilt = rebuilt

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        write_all(self._gold.lake, self._rebuilt)(self._gold.name, self._rows, branch, properties)


class NewRowsBatch(GoldBatch):
    """Rows that only come: nothing stored is touched."""

    def __init__(self, gold: GoldTable, rows: DataFrame, read: int) -> None:
        super().__init__(gold, read)
        self._rows = rows

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        self._gold.lake.append(self._gold.name, self._rows, branch, properties)


class ReplaceBatch(GoldBatch):
    """The rows of the touched keys, replaced; files without such a row stay as they are."""

    def __init__(
        self, gold: GoldTable, keys: Sequence[tuple[str, str]], touched: DataFrame, rows: DataFrame, read: int
    ) -> None:
        super().__init__(gold, read)
        self._keys = tuple(keys)
        self._touched = touched
        self._rows = rows

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        gold = self._gold
        if STATE_COLUMN in self._rows.columns:
            self._replace_whole(branch, properties)
        else:
            replace_rows(gold.lake, gold.name, self._keys, self._touched, self._rows, branch, properties)
            commit_if_nothing_was(gold.store, branch, properties)

    def _replace_whole(self, branch: str, properties: Mapping[str, str]) -> None:
        """Rows with their state: what Spark's MERGE writes has the declared columns alone."""
        named = [col(quoted(key)).alias(f"_lode_x_{number}") for number, (key, _) in enumerate(self._keys)]
        same = " AND ".join(f"{stored} <=> _lode_x_{number}" for number, (_, stored) in enumerate(self._keys))
        touched = self._touched.select(*named)
        self._gold.swapper.replace(self._gold.stored(), touched, expr(same), self._rows, branch, properties)


class UnchangedBatch(GoldBatch):
    """A change that touches no row of this table: only the positions move."""

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        self._gold.store.commit_empty(branch, properties)

    def audit(self, snapshot: Snapshot) -> None:
        return


def write_all(lake: Lake, rebuilt: bool) -> Callable[[str, DataFrame, str, Mapping[str, str]], None]:
    """How all rows are replaced: those of an edited query may have other columns than the table."""
    return partial(overwrite_reshaped, lake) if rebuilt else lake.overwrite


def commit_if_nothing_was(store: TableStore, branch: str, properties: Mapping[str, str]) -> None:
    """A merge that finds nothing to do may leave no snapshot, but the positions must move."""
    before = store.ref(branch)
    store.refresh()
    after = store.ref(branch)
    if before is not None and after is not None and before.id == after.id:
        store.commit_empty(branch, properties)
