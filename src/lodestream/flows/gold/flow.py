"""Gold: equal to a recompute over its inputs, always; how it gets there is the plan's choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from pyspark.errors import (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
)
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lodestream.contracts import Contract
from lodestream.errors import AuditFailed, DeclarationError, LodeError, NotOurTable
from lodestream.flows.agreement import Agreement
from lodestream.flows.flow import Batch, Flow, Published, Span
from lodestream.flows.gold.batches import DEFINITION, REFUSED, TRIED, OverwriteBatch
from lodestream.flows.gold.change import change_groups, pass_rows
from lodestream.flows.gold.equivalence import judge
from lodestream.flows.gold.export import Export
from lodestream.flows.gold.fold import folded
from lodestream.flows.gold.function import declared_keys, recompute_declared
from lodestream.flows.gold.keys import recompute_keys
from lodestream.flows.gold.promises import Promises
from lodestream.flows.gold.rebuild import definition, must_rebuild, rebuild, recomputed
from lodestream.flows.gold.state import StateBatch, StateTable, changed_state, show_state
from lodestream.flows.gold.views import Inputs
from lodestream.flows.shape import ddl_of
from lodestream.flows.tuning import SMALL
from lodestream.pipeline import Table
from lodestream.pipeline.definition import definition_parts, parts_note
from lodestream.pipeline.gold.choose import choose
from lodestream.pipeline.gold.plan import NEGATIVE, GoldPlan, InputInfo, feed_view
from lodestream.sources.source import Position
from lodestream.sources.table import AppendedRows, TableInput, WholeTable
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.jvm import causes
from lodestream.tables.lake import Lake
from lodestream.tables.positions import last_stamp
from lodestream.tables.publish import Base

_REFUSED_ROWS = (ArithmeticException, ArrayIndexOutOfBoundsException, DateTimeException, NumberFormatException)


@dataclass(frozen=True, slots=True)
class GoldInput:
    """One table that a Gold table reads, and what is declared about it."""

    table: TableInput
    lookup: bool = False
    keys: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()


class GoldFlow(Flow):
    def __init__(
        self,
        lake: Lake,
        table: Table,
        run: str,
        inputs: Sequence[GoldInput],
        *,
        contract: Contract | None = None,
        agreement: Agreement | None = None,
    ) -> None:
        super().__init__(lake, table, run, [one.table for one in inputs])
        self.inputs = tuple(inputs)
        self.contract = contract
        self.plan: GoldPlan | None = None
        self.keys: tuple[str, ...] = ()
        self.promises: Promises | None = None
        # A verification found other rows than the query gives: the next batch makes all of them anew.
        self.rebuilding = False
        self.state = StateTable(lake, table.name, run)
        # Up to this many stored rows a batch writes the whole table: one job is faster than finding what to leave.
        self.small = SMALL
        self._agreement = agreement
        self._export = Export(lake, table.name, table.export) if table.export else None
        self._declared: tuple[TableInput, ...] = tuple(one.table for one in inputs)
        self.tables = self._declared
        self.definition = self.parts = ""
        self.identities: dict[str, dict[str, int]] = {}
        self._shaped: dict[str, object] = {}
        self._untried: Callable[[], None] | None = None
        self.refused: str | None = None

    def ready(self) -> bool:
        return all(table.latest() is not None for table in self.tables)

    def prepare(self) -> None:
        self.decide({table.name: table.latest() or {} for table in self._declared})
        super().prepare()

    def decide(self, positions: Mapping[str, Position]) -> None:
        """Choose how the table is kept, for inputs as they are shaped at these positions. Nothing is written."""
        shapes = {table.name: table.now(positions[table.name]) for table in self._declared}
        infos = [self._info(one, shapes[one.table.name]) for one in self.inputs]
        self.identities = {table.name: table.identities(positions[table.name]) for table in self._declared}
        if self.table.sql is not None:
            self.plan = choose(self.table.sql, infos, self.table.strategy)
        else:
            self.keys = declared_keys(self.table, shapes, [one.table.name for one in self.inputs if one.lookup])
        self.definition = definition(self, infos)
        self.parts = parts_note(definition_parts(self.table, infos))
        self.refused, self._untried = None, None
        if self.plan is not None and self.plan.strategy != "full":
            self._weigh(self.plan, infos, {name: frame.schema for name, frame in shapes.items()})
        self._choose_sources()
        self.promises = Promises.of(self.lake, self.table, self.contract, self.plan)
        self._shaped = {table.name: table.shape(positions[table.name]) for table in self._declared}

    def _choose_sources(self) -> None:
        """A whole read builds on nothing that was read before, so nothing that happens to the table can break it."""
        whole = self.plan.strategy == "full" if self.plan else not self.keys
        self.sources = self.tables = tuple(
            WholeTable(self.lake, table.name) if whole and isinstance(table, AppendedRows) else table
            for table in self._declared
        )

    def _weigh(self, plan: GoldPlan, infos: Sequence[InputInfo], shapes: Mapping[str, StructType]) -> None:
        """A plan that the stored rows are kept by was tried when it was new, and so was one that was refused then."""
        notes: Mapping[str, str] = {}
        with suppress(NotOurTable):  # data and no positions: it may be adopted
            stamp = last_stamp(self.lake.store(self.name)) if self.lake.exists(self.name) else None
            notes = stamp.notes if stamp is not None else {}
        if notes.get(DEFINITION) == self.definition and TRIED in notes:
            return
        if notes.get(REFUSED) == self.definition:
            self._refuse(plan, infos, "Spark gave other rows for it before")
            return
        self._untried = partial(self._try, plan, infos, shapes)
        if plan.shape == "groups":
            self._untried()  # its first build is made by the plan as well

    def _try(self, plan: GoldPlan, infos: Sequence[InputInfo], shapes: Mapping[str, StructType]) -> None:
        """Spark compares the plan with the query on generated rows; a plan that differs is not used."""
        query = choose(self.table.sql or "", infos, "full")
        verdict = judge(self.lake.spark, plan, query.full_sql, shapes)
        self._untried = None  # only now: what raises before is tried again
        if verdict.reason is not None:
            self._refuse(plan, infos, verdict.reason)
            self.notice("plan-refused", strategy=plan.strategy, why=verdict.reason)

    def _refuse(self, plan: GoldPlan, infos: Sequence[InputInfo], why: str) -> None:
        if self.table.strategy is not None:
            raise DeclarationError(
                f"{self.name}: strategy {plan.strategy!r} was asked for, but Spark shows that it is not the query",
                why=why,
                fix="leave the strategy to Lodestream, and report the query",
            )
        query = choose(self.table.sql or "", infos, "full")
        self.refused = self.definition
        self.plan = replace(query, reason=f"recomputed as a whole, because {why}")
        self.definition = definition(self, infos)
        self._choose_sources()

    def _reshaped(self, positions: Mapping[str, Position]) -> None:
        """An input that changed its columns: the plan that reads them is chosen anew."""
        if self._shaped != {table.name: table.shape(positions[table.name]) for table in self._declared}:
            self.decide(positions)

    @property
    def tried(self) -> bool:
        return self._untried is None

    def rebuild_next(self) -> None:
        """Make the next batch, which comes without news too, from the whole of the inputs."""
        self.rebuilding = True

    def step(self, rows: int) -> Published | None:
        asked = self.rebuilding  # by another thread, perhaps in the middle of a batch: that one does not count
        if asked:
            self._positions = None  # so that it does not wait for news
        published = super().step(rows)
        if asked and published is not None:
            self.rebuilding = False
            self.notice("verify.rebuilt", snapshot=published.snapshot, rows=published.rows.get("out", 0))
        if self._export is not None and self._writer is not None:
            head = self.writer.store.head()
            shown = published.snapshot if published else head.id if head else None
            if shown is not None:
                self._export.show(shown)
        return published

    def create(self) -> IcebergStore:
        shape = recomputed(self, {name: frame.limit(0) for name, frame in self.shapes().items()})
        if self.plan is not None and self.plan.state_home == "table":
            shape = show_state(self, self.plan, shape)
        if self.promises is not None:
            self.promises.fit(shape.schema)
        return self.lake.open(
            self.name,
            ddl_of(shape.schema),
            partition_by=self.table.partition_by,
            properties=dict(self.table.properties),
            comment=self.table.description,
        )

    def make(self, span: Span) -> Batch:
        self._reshaped(span.to)
        inputs = Inputs(self.lake.spark, self.tables, span)
        if self._untried is not None and not must_rebuild(self, span, inputs):
            self._untried()
        if must_rebuild(self, span, inputs):
            return rebuild(self, span, inputs)
        plan = self.plan
        if plan is None:
            return recompute_declared(self, inputs, span)
        if plan.strategy == "affected" or any(name in plan.on_lookup_change for name in inputs.changed):
            self.expect(max(span.rows, self.read_rows(span) // 10))
            try:
                return recompute_keys(self, plan, inputs, span)
            except _REFUSED_ROWS:
                # A key is computed for changed rows that a join or a filter would have kept from the query.
                return rebuild(self, span, inputs)
        if plan.state_home == "table":
            return self._restate(plan, span, inputs)
        if plan.shape == "rows":
            return pass_rows(self, plan, inputs, span)
        if plan.stored_keys and self.stored_rows > self.small:
            return change_groups(self, plan, inputs, span)
        return OverwriteBatch(self, folded(self, plan, span), span.rows)

    @property
    def stored_rows(self) -> int:
        head = self.writer.store.head()
        return head.total_rows if head else 0

    def retracts(self, name: str | None) -> bool:
        return any(table.retracts for table in self.tables if table.name == name)

    def explain(self, error: Exception) -> LodeError | None:
        if NEGATIVE in str(error) or any(NEGATIVE in message for _, message in causes(error)):
            return AuditFailed(
                f"{self.name}: a group would hold fewer rows than none",
                why="its input took a row away that this table never got",
                fix=f"rebuild {self.name}; if it happens again, report it with `lode events --table {self.name}`",
            )
        return super().explain(error)

    def _span(self, base: Base, latest: Mapping[str, Position], rows: int) -> Span | None:
        known = base.stamp.positions if base.stamp else {}
        chosen = self._agreement.chosen(known, latest) if self._agreement else latest
        if chosen is None:
            return None
        # The whole state is read, or positions belong together: then there is nothing to cap.
        capped = self._adds_up(base) and (self._agreement is None or self._agreement.alone)
        span = super()._span(base, chosen, rows if capped else 2**62)
        stale = base.stamp is not None and base.stamp.notes.get(DEFINITION) != self.definition
        if span is None and base.stamp is not None and (stale or self.rebuilding):
            since = {table.name: known.get(table.name) or table.start(chosen[table.name]) for table in self.tables}
            span = Span(since, chosen, 1, previous=base.stamp)  # nothing new, but other rows
        return replace(span, caught_up=span.caught_up and chosen == latest) if span else None

    def _adds_up(self, base: Base) -> bool:
        """Whether a part of the change can be added to what is stored."""
        plan = self.plan
        known = base.stamp is not None and base.stamp.notes.get(DEFINITION) == self.definition
        return known and plan is not None and plan.strategy == "delta" and not plan.on_lookup_change

    def _restate(self, plan: GoldPlan, span: Span, inputs: Inputs) -> Batch:
        known = self.state.of(span.previous)
        if known is None:
            return rebuild(self, span, inputs)
        for name in plan.inputs:
            if name == plan.stream:
                inputs.changes(name).createOrReplaceTempView(feed_view(name))
            else:
                inputs.show_now(name)
        return StateBatch(self, plan, changed_state(self, plan, self.state.rows(known)), span)

    def expect(self, rows: int) -> None:
        """So many rows are to be read: Spark is tuned for them."""
        self._tuning.fit(rows)

    def shapes(self) -> dict[str, DataFrame]:
        latest = {table.name: table.latest() for table in self.tables}
        return {table.name: table.now(latest[table.name] or {}) for table in self.tables}

    def read_rows(self, span: Span) -> int:
        return sum(table.rows_at(span.to[table.name]) for table in self.tables)

    @staticmethod
    def _info(one: GoldInput, rows: DataFrame) -> InputInfo:
        columns = {field.name: field.dataType.simpleString() for field in rows.schema}
        return InputInfo(one.table.name, columns, one.keys, one.partitions, lookup=one.lookup)
