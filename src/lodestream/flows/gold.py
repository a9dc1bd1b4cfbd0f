"""Gold: equal to a recompute over its inputs, always; how it gets there is the plan's choice."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from lodestream.flows.flow import Batch, Flow, Span
from lodestream.flows.shape import ddl_of
from lodestream.flows.tuning import SMALL
from lodestream.flows.usercode import transform
from lodestream.pipeline import Table
from lodestream.pipeline.gold.choose import choose
from lodestream.pipeline.gold.plan import (
    BOTH,
    DELTA,
    FOLDED,
    GOLD,
    STATE,
    STATE_COLUMN,
    WEIGHT,
    GoldPlan,
    InputInfo,
    feed_view,
    now_view,
)
from lodestream.sources.source import Source
from lodestream.sources.table import AppendedRows, WholeTable
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake

DEFINITION = "definition"


class GoldFlow(Flow):
    """`streams` are inputs whose appended rows say everything; all others are read whole."""

    def __init__(self, lake: Lake, table: Table, run: str, *, inputs: Sequence[str], appended: Sequence[str]) -> None:
        super().__init__(lake, table, run, ())
        self.inputs = tuple(inputs)
        self._appended = frozenset(appended)
        self.plan: GoldPlan | None = None

    def ready(self) -> bool:
        return all(self.lake.exists(name) for name in self.inputs)

    def prepare(self) -> None:
        self.plan = self._analysed() if self.table.sql is not None else None
        self.sources = tuple(self._source(name) for name in self.inputs)
        super().prepare()

    def create(self) -> IcebergStore:
        empty = {name: self._whole(name).limit(0) for name in self.inputs}
        return self.lake.open(
            self.name,
            ddl_of(self._rebuilt(empty).schema),
            partition_by=self.table.partition_by,
            properties=dict(self.table.properties),
            comment=self.table.description,
        )

    def make(self, span: Span) -> Batch:
        if self.plan is not None and self.plan.strategy == "delta" and not self._must_rebuild(span):
            return OverwriteBatch(self, self._folded(span), span.rows)
        whole = {name: self._whole(name, span.to[name]["snapshot"]) for name in self.inputs}
        return OverwriteBatch(self, self._rebuilt(whole), span.rows)

    @property
    def definition(self) -> str:
        text = self.table.sql or f"{self.table.location}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _must_rebuild(self, span: Span) -> bool:
        """Another query than the stored rows came from, or a lookup that changed under them."""
        if span.previous is not None and span.previous.notes.get(DEFINITION) != self.definition:
            return True
        stream = self.plan.stream if self.plan else None
        return any(span.since[name] != span.to[name] for name in self.inputs if name != stream) and (
            span.previous is not None
        )

    def _folded(self, span: Span) -> DataFrame:
        plan, spark = self._delta_plan, self.lake.spark
        for source in self.sources:
            since, to = span.since[source.name], span.to[source.name]
            if source.name == plan.stream:
                feed = self._narrow(source.read(since, to), span.rows).withColumn(WEIGHT, lit(1))
                feed.createOrReplaceTempView(feed_view(source.name))
            else:
                self._whole(source.name, to["snapshot"]).createOrReplaceTempView(now_view(source.name))
        stored = self.writer.store.head()
        groups = span.rows + (stored.total_rows if stored else 0)
        self._narrow(self.lake.whole(self.name), groups).createOrReplaceTempView(GOLD)
        hint = "/*+ COALESCE(1) */" if groups <= SMALL else ""
        both = f"SELECT {hint} * FROM ({plan.both_sql})"  # noqa: S608 (made by the plan)
        steps = ((STATE, plan.unpack_sql), (DELTA, plan.delta_sql), (BOTH, both), (FOLDED, plan.fold_sql))
        # One statement: each further one would be parsed and analysed on its own.
        chain = ", ".join(f"{view} AS ({sql})" for view, sql in steps)
        return spark.sql(f"WITH {chain} {plan.store_sql}")

    def _whole(self, name: str, snapshot: int | None = None) -> DataFrame:
        """An input as a query sees it: without the hidden state of another Gold table."""
        return self.lake.whole(name, snapshot).drop(STATE_COLUMN)

    def _narrow(self, frame: DataFrame, rows: int) -> DataFrame:
        """Few rows in one partition: grouping them then needs no shuffle."""
        return frame.coalesce(1) if rows <= SMALL else frame

    def _rebuilt(self, whole: Mapping[str, DataFrame]) -> DataFrame:
        if self.plan is None:
            return transform(self.lake.spark, self.table, {name: whole[name] for name in self.inputs})
        for name, frame in whole.items():
            frame.createOrReplaceTempView(now_view(name))
        return self.lake.spark.sql(self.plan.full_sql)

    @property
    def _delta_plan(self) -> GoldPlan:
        if self.plan is None:
            raise RuntimeError("prepare() first")
        return self.plan

    def _analysed(self) -> GoldPlan:
        return choose(self.table.sql or "", [self._info(name) for name in self.inputs], self.table.strategy)

    def _info(self, name: str) -> InputInfo:
        columns = {field.name: field.dataType.simpleString() for field in self._whole(name).schema}
        return InputInfo(name, columns, append_only=name in self._appended, lookup=name not in self._appended)

    def _source(self, name: str) -> Source:
        streamed = self.plan is not None and self.plan.strategy == "delta" and name == self.plan.stream
        return AppendedRows(self.lake, name) if streamed else WholeTable(self.lake, name)


class OverwriteBatch(Batch):
    """All rows of the table, replaced in one atomic step."""

    def __init__(self, flow: GoldFlow, rows: DataFrame, read: int) -> None:
        self.counts = {"in": read}
        self._flow = flow
        self._rows = rows

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        self._flow.lake.overwrite(self._flow.name, self._rows, branch, properties)

    def notes(self) -> Mapping[str, str]:
        return {DEFINITION: self._flow.definition}
