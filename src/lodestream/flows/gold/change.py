# ruff: noqa: S608 - the SQL is the plan's
"""Delta into a large table: only the stored rows that the change meets are read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.functions import col

from lodestream.flows.flow import Batch, Span
from lodestream.flows.gold.batches import NewRowsBatch, OverwriteBatch, ReplaceBatch, UnchangedBatch
from lodestream.flows.gold.fold import folded, nested
from lodestream.flows.gold.views import Inputs, Keys
from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.plan import BOTH, DELTA, FOLDED, GOLD, STATE, WEIGHT, GoldPlan, feed_view
from lodestream.tables.aside import set_aside

if TYPE_CHECKING:
    from lodestream.flows.gold.flow import GoldFlow


def pass_rows(flow: GoldFlow, plan: GoldPlan, inputs: Inputs, span: Span) -> Batch:
    """A row per row: what came is appended; what went is taken out, which needs the stored rows."""
    delta = _delta(flow, plan, inputs)
    if not flow.retracts(plan.stream):
        return NewRowsBatch(flow, delta.drop(WEIGHT), span.rows)
    kept = set_aside(delta)
    if kept.where(col(WEIGHT) < 0).isEmpty():
        return NewRowsBatch(flow, kept.drop(WEIGHT), span.rows)
    if flow.stored_rows <= flow.small:
        return OverwriteBatch(flow, folded(flow, plan, span), span.rows)
    return _met(flow, plan, kept, span)


def change_groups(flow: GoldFlow, plan: GoldPlan, inputs: Inputs, span: Span) -> Batch:
    """The touched groups of a large table, each with the change added to what it holds."""
    return _met(flow, plan, set_aside(_delta(flow, plan, inputs)), span)


def _delta(flow: GoldFlow, plan: GoldPlan, inputs: Inputs) -> DataFrame:
    for name in plan.inputs:
        if name == plan.stream:
            inputs.changes(name).createOrReplaceTempView(feed_view(name))
        else:
            inputs.show_now(name)
    return flow.lake.spark.sql(plan.delta_sql or "")


def _met(flow: GoldFlow, plan: GoldPlan, delta: DataFrame, span: Span) -> Batch:
    spark = flow.lake.spark
    delta.createOrReplaceTempView(DELTA)
    names = [key for key, _ in plan.stored_keys]
    keys = Keys(delta.select(*[col(quoted(name)) for name in names]).distinct())
    if keys.none:
        return UnchangedBatch(flow, span.rows)
    stored = flow.lake.whole(flow.name)
    plain = [(column.strip("`"), key) for key, column in plan.stored_keys if column.strip("`") in stored.columns]
    only = keys.condition(plain)
    (stored if only is None else stored.where(only)).createOrReplaceTempView(GOLD)
    same = " AND ".join(f"_lode_s.{quoted(name)} <=> {DELTA}.{quoted(name)}" for name in names)
    met = f"SELECT _lode_s.* FROM ({plan.unpack_sql}) AS _lode_s LEFT SEMI JOIN {DELTA} ON {same}"
    steps = ((STATE, met), (BOTH, plan.both_sql), (FOLDED, plan.fold_sql))
    return ReplaceBatch(flow, plan.stored_keys, keys.rows, spark.sql(nested(steps, plan.store_sql)), span.rows)
