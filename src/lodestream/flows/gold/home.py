"""A Gold table as its query shapes it."""

from __future__ import annotations

from lodestream.flows.code.declared import refuse_own_names, run_query
from lodestream.flows.columns.shape import ddl_of
from lodestream.flows.gold.rebuild import recomputed
from lodestream.flows.gold.refusals import refuse_types
from lodestream.flows.gold.state import show_state
from lodestream.flows.gold.table import GoldTable
from lodestream.flows.parts import Home
from lodestream.flows.promise import Promise
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.stored import in_stored_types


class GoldHome(Home):
    def __init__(self, gold: GoldTable, promise: Promise | None) -> None:
        self._gold = gold
        self._promise = promise

    def open(self, *, guest: bool = False) -> IcebergStore:
        gold, promise = self._gold, self._promise
        gold.decide(gold.latest())
        if promise is not None:
            promise.check(gold.lake, gold.name)
        store = self.create()
        if promise is not None:
            promise.record(store)
        gold.opened(store)
        return store

    def create(self) -> IcebergStore:
        gold, table = self._gold, self._gold.table
        empty = {name: frame.limit(0) for name, frame in gold.shapes().items()}
        if table.sql is not None:
            refuse_own_names(table, run_query(gold.lake.spark, table, table.sql, empty))
        shape = recomputed(gold, empty)
        if gold.plan is not None and gold.plan.state_home == "table":
            shape = show_state(gold, gold.plan, shape)
        refuse_types(gold.name, shape.schema, table.properties)
        if gold.promises is not None:
            gold.promises.fit(shape.schema)
        return gold.lake.open(
            gold.name,
            ddl_of(in_stored_types(shape).schema),
            partition_by=table.partition_by,
            properties=dict(table.properties),
            comment=table.description,
        )
