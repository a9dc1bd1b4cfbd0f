"""How a Gold table is kept: the plan that is chosen for its query, judged by Spark, and what it is kept from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lodestream.contracts import Contract
from lodestream.errors import CatalogUnavailable, DeclarationError, NotOurTable
from lodestream.flows.batch import Span
from lodestream.flows.context import SMALL, Context
from lodestream.flows.gold.equivalence import judge
from lodestream.flows.gold.function import declared_keys
from lodestream.flows.gold.kept_types import stored_shape, unkept
from lodestream.flows.gold.promises import Promises
from lodestream.flows.gold.rebuild import definition
from lodestream.flows.gold.state import StateTable
from lodestream.flows.parts import Repair
from lodestream.names import STATE_COLUMN
from lodestream.observe import PlanRefused, PlanUntried
from lodestream.pipeline.definition import definition_parts, parts_note
from lodestream.pipeline.gold.choose import choose
from lodestream.pipeline.gold.plan import GoldPlan, InputInfo
from lodestream.pipeline.gold.rows import rows_fold_sql
from lodestream.pipeline.gold.statement import refuse_catalogs
from lodestream.sources.source import Position
from lodestream.sources.table import TableInput, WholeTable
from lodestream.tables.hidden import unfiltered
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.notes import DEFINITION, REFUSED, TRIED
from lodestream.tables.snapshot import Snapshot
from lodestream.tables.store import last_stamp
from lodestream.tables.swap import Swapper
from lodestream.tables.wanted_rebuild import forget_rebuild, note_rebuild, rebuild_noted


@dataclass(frozen=True, slots=True)
class GoldInput:
    """One table that a Gold table reads, and what is declared about it."""

    table: TableInput
    lookup: bool = False
    keys: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()


class GoldTable(Repair):
    """Chosen anew whenever the shape of an input changes. Nothing here is published."""

    def __init__(self, context: Context, inputs: Sequence[GoldInput], contract: Contract | None) -> None:
        self.context = context
        self.lake, self.table, self.name = context.lake, context.table, context.name
        self.inputs = tuple(inputs)
        self.contract = contract
        self.plan: GoldPlan | None = None
        self.keys: tuple[str, ...] = ()
        self.promises: Promises | None = None
        # How often a rebuild was asked for, and up to which of these it is done.
        self.rebuilds_asked = self.rebuilds_done = 0
        self.state = StateTable(context.lake, context.name, context.run)
        # Up to this many stored rows a batch writes the whole table: one job is faster than finding what to leave.
        self.small = SMALL
        self._declared: tuple[TableInput, ...] = tuple(one.table for one in inputs)
        self.tables = self._declared
        self.definition = self.parts = ""
        self.identities: dict[str, dict[str, int]] = {}
        self._shaped: dict[str, object] = {}
        self._untried: Callable[[], None] | None = None
        self.refused: str | None = None
        self._store: IcebergStore | None = None
        self._swapper: Swapper | None = None

    @property
    def store(self) -> IcebergStore:
        if self._store is None:
            raise RuntimeError("open() first")
        return self._store

    def opened(self, store: IcebergStore) -> None:
        self._store, self._swapper = store, None
        if rebuild_noted(store) and not self.rebuilding:
            self.rebuilds_asked += 1

    @property
    def rebuilding(self) -> bool:
        return self.rebuilds_asked > self.rebuilds_done

    def rebuild_next(self) -> None:
        self.rebuilds_asked += 1  # first, so that a rebuild that ends in between leaves the note alone
        note_rebuild(self.lake.store(self.name))  # a process that ends before that batch leaves it to the next

    def rebuilt(self, asked: int) -> bool:
        """A batch was published that began when so many rebuilds had been asked for: whether it was one."""
        if asked <= self.rebuilds_done:
            return False
        self.rebuilds_done = asked
        if self.rebuilding:
            return True  # asked for again meanwhile: the note stays
        with suppress(CatalogUnavailable):  # then it is rebuilt once more, by whoever begins next
            forget_rebuild(self.store)
        return True

    def latest(self) -> dict[str, Position]:
        return {table.name: table.latest() or {} for table in self._declared}

    def decide(self, positions: Mapping[str, Position]) -> None:
        """Choose how the table is kept, for inputs as they are shaped at these positions. Nothing is written."""
        shapes = {table.name: table.now(positions[table.name]) for table in self._declared}
        infos = [self._info(one, shapes[one.table.name]) for one in self.inputs]
        self.identities = {table.name: table.identities(positions[table.name]) for table in self._declared}
        if self.table.sql is not None:
            refuse_catalogs(self.table.sql, self.lake.catalog)
            self.plan = self._typed(choose(self.table.sql, infos, self.table.strategy), infos, shapes)
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

    def _typed(self, plan: GoldPlan, infos: Sequence[InputInfo], shapes: Mapping[str, DataFrame]) -> GoldPlan:
        """Stored rows are found and compared by their types, which only Spark can tell of a query."""
        schema = stored_shape(self.lake.spark, plan, shapes) if plan.strategy == "delta" else None
        if schema is None:
            return plan
        why = unkept(plan, schema, int(self.table.properties.get("format-version", "2")))
        if why is not None:
            return self._other_than_delta(plan, infos, why)
        if plan.shape != "rows":
            return plan
        kinds = {field.name: field.dataType.simpleString() for field in schema}
        return replace(plan, fold_sql=rows_fold_sql(plan.columns, kinds))

    def _other_than_delta(self, plan: GoldPlan, infos: Sequence[InputInfo], why: str) -> GoldPlan:
        """The next best way for a delta that is proven, but cannot be kept in the types of its query."""
        if self.table.strategy is not None:
            raise DeclarationError(
                f"{self.name}: strategy {plan.strategy!r} was asked for, but its rows cannot be kept by it",
                why=why,
                fix="leave the strategy to Lodestream, or cast to a type that a table can keep: to_json(a_map)",
            )
        with suppress(DeclarationError):
            keys = choose(self.table.sql or "", infos, "affected")
            return replace(keys, reason=f"{keys.reason}; not by delta, because {why}")
        return replace(choose(self.table.sql or "", infos, "full"), reason=f"recomputed as a whole, because {why}")

    def _choose_sources(self) -> None:
        """A whole read builds on nothing that was read before, so nothing that happens to the table can break it."""
        whole = self.plan.strategy == "full" if self.plan else not self.keys
        self.tables = tuple(
            WholeTable(self.lake, table.name) if whole and table.appends else table for table in self._declared
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
        if verdict.reason is not None and not verdict.tried and self.table.strategy is not None:
            # It is proven, and was asked for.
            self.context.notices.add(PlanUntried(strategy=plan.strategy, why=verdict.reason))
        elif verdict.reason is not None:
            self._refuse(plan, infos, verdict.reason)
            self.context.notices.add(PlanRefused(strategy=plan.strategy, why=verdict.reason))

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

    def follow_shapes(self, positions: Mapping[str, Position]) -> None:
        """An input that changed its columns: the plan that reads them is chosen anew."""
        if self._shaped != {table.name: table.shape(positions[table.name]) for table in self._declared}:
            self.decide(positions)

    @property
    def tried(self) -> bool:
        return self._untried is None

    def try_plan(self) -> None:
        """A plan that no row was kept by yet is compared with the query first."""
        if self._untried is not None:
            self._untried()

    @property
    def swapper(self) -> Swapper:
        if self._swapper is None:
            self._swapper = Swapper(self.lake, self.store)
        return self._swapper

    def stored(self) -> DataFrame:
        """The rows of the table with their state, as of the head that a batch is built on."""
        rows = self.lake.whole(self.name, self.head.id)
        return rows.withColumn(STATE_COLUMN, unfiltered(STATE_COLUMN)) if self.keeps_state else rows

    @property
    def head(self) -> Snapshot:
        head = self.store.head()
        if head is None:
            raise CatalogUnavailable(f"{self.name} has no snapshot", why="its creation was interrupted")
        return head

    @property
    def lost_state(self) -> bool:
        """Whether another tool wrote the table anew: it leaves out what readers do not see."""
        return self.keeps_state and not self.store.holds_hidden(self.head)

    @property
    def keeps_state(self) -> bool:
        """Whether each row has the state beside it that a change is added to."""
        return self.plan is not None and self.plan.state_home == "column"

    @property
    def stored_rows(self) -> int:
        head = self.store.head()
        return head.total_rows if head else 0

    def retracts(self, name: str | None) -> bool:
        return any(table.retracts for table in self.tables if table.name == name)

    def expect(self, rows: int) -> None:
        """So many rows are to be read: Spark is tuned for them."""
        self.context.tuning.fit(rows)

    def shapes(self) -> dict[str, DataFrame]:
        latest = {table.name: table.latest() for table in self.tables}
        return {table.name: table.now(latest[table.name] or {}) for table in self.tables}

    def read_rows(self, span: Span) -> int:
        return sum(table.rows_at(span.to[table.name]) for table in self.tables)

    @staticmethod
    def _info(one: GoldInput, rows: DataFrame) -> InputInfo:
        columns = {field.name: field.dataType.simpleString() for field in rows.schema}
        return InputInfo(one.table.name, columns, one.keys, one.partitions, lookup=one.lookup)
