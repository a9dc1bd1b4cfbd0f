"""HAVING hides groups that may come back: their state lives in a sibling table, `<table>__state`.

The state is committed first. The Gold snapshot names the state snapshot it was made from, so a crash between the two
leaves a state that nobody refers to, never a Gold table that counts rows twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lodestream.flows.batch import Span
from lodestream.flows.columns.shape import ddl_of
from lodestream.flows.gold.batches import GoldBatch, write_all
from lodestream.flows.gold.fold import nested
from lodestream.names import state_of
from lodestream.pipeline.gold.plan import BOTH, DELTA, FOLDED, GOLD, STORED, GoldPlan
from lodestream.tables.lake import Lake
from lodestream.tables.notes import MADE_FROM
from lodestream.tables.publish import Writer, until_published
from lodestream.tables.snapshot import Stamp

if TYPE_CHECKING:
    from lodestream.flows.gold.table import GoldTable


class StateTable:
    """The groups of one Gold table, hidden ones included."""

    def __init__(self, lake: Lake, table: str, run: str) -> None:
        self.name = state_of(table)
        self._lake = lake
        self._run = run
        self._writer: Writer | None = None

    def of(self, stamp: Stamp | None) -> int | None:
        """The snapshot that a Gold snapshot was made from; None when there is none or it has expired."""
        named = stamp.notes.get(MADE_FROM) if stamp else None
        if named is None or not self._lake.exists(self.name):
            return None
        return int(named) if self._lake.store(self.name).snapshot(int(named)) is not None else None

    def rows(self, snapshot: int) -> DataFrame:
        return self._lake.whole(self.name, snapshot)

    def put(self, rows: DataFrame, stamp: Stamp, *, rebuilt: bool = False) -> int:
        """Commit a whole state and give the snapshot that holds it."""
        writer = self._open(rows.schema)
        write = write_all(self._lake, rebuilt)

        def attempt() -> int:
            staged = writer.stage(writer.begin(), stamp, partial(write, self.name, rows))
            return writer.publish(staged).id

        return until_published(self.name, attempt, most=5, why="it was changed five times in a row")

    def _open(self, schema: StructType) -> Writer:
        if self._writer is None:
            self._writer = Writer(self._lake.open(self.name, ddl_of(schema)), self._run, alone=False)
            self._writer.sweep()
        return self._writer


class StateBatch(GoldBatch):
    """The new state, and the rows of the table that it shows."""

    def __init__(self, gold: GoldTable, plan: GoldPlan, state: DataFrame, span: Span, *, rebuilt: bool = False) -> None:
        super().__init__(gold, span.rows)
        self._rebuilt = rebuilt
        self._plan = plan
        self._state = state
        self._snapshot: int | None = None

    def companions(self, stamp: Stamp, main_version: str) -> None:
        self._snapshot = self._gold.state.put(self._state, stamp, rebuilt=self._rebuilt)

    def notes(self) -> Mapping[str, str]:
        return {**super().notes(), MADE_FROM: str(self._snapshot)}

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        if self._snapshot is None:
            raise RuntimeError("the state is committed before the table")
        gold = self._gold
        shown = show_state(gold, self._plan, gold.state.rows(self._snapshot))
        write_all(gold.lake, self._rebuilt)(gold.name, shown, branch, properties)


def show_state(gold: GoldTable, plan: GoldPlan, state: DataFrame) -> DataFrame:
    state.createOrReplaceTempView(GOLD)
    return gold.lake.spark.sql(f"WITH {FOLDED} AS ({plan.unpack_sql}) {plan.present_sql}")


def changed_state(gold: GoldTable, plan: GoldPlan, state: DataFrame) -> DataFrame:
    """The stored groups plus the delta; the feed and lookup views are there already."""
    state.createOrReplaceTempView(GOLD)
    steps = ((STORED, plan.unpack_sql), (DELTA, plan.delta_sql), (BOTH, plan.both_sql), (FOLDED, plan.fold_sql))
    return gold.lake.spark.sql(nested(steps, plan.store_sql))
