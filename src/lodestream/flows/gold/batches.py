"""The ways a Gold batch is written, each in one commit: all rows, only new ones, the rows of some keys, none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from lodestream.flows.flow import Batch
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake
from lodestream.tables.replace import replace_rows
from lodestream.tables.reshape import overwrite_reshaped
from lodestream.tables.snapshot import Snapshot

if TYPE_CHECKING:
    from lodestream.flows.gold.flow import GoldFlow

DEFINITION = "definition"


class GoldBatch(Batch):
    """Says which query its rows came from: rows of another one must not be added to."""

    def __init__(self, flow: GoldFlow, read: int) -> None:
        self.counts: Mapping[str, int] = {"in": read}
        self._flow = flow

    def notes(self) -> Mapping[str, str]:
        return {DEFINITION: self._flow.definition}

    def audit(self, snapshot: Snapshot) -> None:
        if self._flow.promises is not None:
            self.counts = {**self.counts, **self._flow.promises.hold(snapshot)}


class OverwriteBatch(GoldBatch):
    """All rows of the table, replaced in one atomic step."""

    def __init__(self, flow: GoldFlow, rows: DataFrame, read: int, *, rebuilt: bool = False) -> None:
        super().__init__(flow, read)
        self._rows = rows
        self._rebuilt = rebuilt

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        write_all(self._flow.lake, self._rebuilt)(self._flow.name, self._rows, branch, properties)


class NewRowsBatch(GoldBatch):
    """Rows that only come: nothing stored is touched."""

    def __init__(self, flow: GoldFlow, rows: DataFrame, read: int) -> None:
        super().__init__(flow, read)
        self._rows = rows

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        self._flow.lake.append(self._flow.name, self._rows, branch, properties)


class ReplaceBatch(GoldBatch):
    """The rows of the touched keys, replaced; files without such a row stay as they are."""

    def __init__(
        self, flow: GoldFlow, keys: Sequence[tuple[str, str]], touched: DataFrame, rows: DataFrame, read: int
    ) -> None:
        super().__init__(flow, read)
        self._keys = tuple(keys)
        self._touched = touched
        self._rows = rows

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        flow = self._flow
        replace_rows(flow.lake, flow.name, self._keys, self._touched, self._rows, branch, properties)
        commit_if_nothing_was(flow.writer.store, branch, properties)


class UnchangedBatch(GoldBatch):
    """A change that touches no row of this table: only the positions move."""

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        store = self._flow.writer.store
        if isinstance(store, IcebergStore):
            store.commit_empty(branch, properties)

    def audit(self, snapshot: Snapshot) -> None:
        return


def write_all(lake: Lake, rebuilt: bool) -> Callable[[str, DataFrame, str, Mapping[str, str]], None]:
    """How all rows are replaced: those of an edited query may have other columns than the table."""
    return partial(overwrite_reshaped, lake) if rebuilt else lake.overwrite


def commit_if_nothing_was(store: object, branch: str, properties: Mapping[str, str]) -> None:
    """A merge that finds nothing to do may leave no snapshot, but the positions must move."""
    if not isinstance(store, IcebergStore):
        return
    before = store.ref(branch)
    store.refresh()
    after = store.ref(branch)
    if before is not None and after is not None and before.id == after.id:
        store.commit_empty(branch, properties)
