# ruff: noqa: S608 - the SQL is the plan's
"""Delta into a large table: only the stored rows that the change meets are read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.functions import col

from lodestream.flows.batch import Batch, Span
from lodestream.flows.gold.batches import NewRowsBatch, OverwriteBatch, ReplaceBatch, UnchangedBatch
from lodestream.flows.gold.fold import folded, nested
from lodestream.flows.gold.views import Inputs, Keys
from lodestream.names import WEIGHT
from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.plan import BOTH, DELTA, FOLDED, GOLD, STORED, GoldPlan, feed_view
from lodestream.tables.find import set_aside

if TYPE_CHECKING:
    from lodestream.flows.gold.table import GoldTable


def pass_rows(gold: GoldTable, plan: GoldPlan, inputs: Inputs, span: Span) -> Batch:
    """A row per row: what came is appended; what went is taken out, which needs the stored rows."""
    delta = _delta(gold, plan, inputs)
    if not gold.retracts(plan.stream):
        return NewRowsBatch(gold, delta.drop(WEIGHT), span.rows)
    kept = set_aside(delta)
    if kept.where(col(WEIGHT) < 0).isEmpty():
        return NewRowsBatch(gold, kept.drop(WEIGHT), span.rows)
    if gold.stored_rows <= gold.small:
        return OverwriteBatch(gold, folded(gold, plan, span), span.rows)
    return _met(gold, plan, kept, span)


def change_groups(gold: GoldTable, plan: GoldPlan, inputs: Inputs, span: Span) -> Batch:
    """The touched groups of a large table, each with the change added to what it holds."""
    return _met(gold, plan, set_aside(_delta(gold, plan, inputs)), span)


def _delta(gold: GoldTable, plan: GoldPlan, inputs: Inputs) -> DataFrame:
    for name in plan.inputs:
        if name == plan.stream:
            inputs.changes(name).createOrReplaceTempView(feed_view(name))
        else:
            inputs.show_now(name)
    return gold.lake.spark.sql(plan.delta_sql or "")


def _met(gold: GoldTable, plan: GoldPlan, delta: DataFrame, span: Span) -> Batch:
    spark = gold.lake.spark
    delta.createOrReplaceTempView(DELTA)
    names = [key for key, _ in plan.stored_keys]
    keys = Keys(delta.select(*[col(quoted(name)) for name in names]).distinct())
    if keys.none:
        return UnchangedBatch(gold, span.rows)
    stored = gold.stored()
    plain = [(column.strip("`"), key) for key, column in plan.stored_keys if column.strip("`") in stored.columns]
    only = keys.condition(plain)
    (stored if only is None else stored.where(only)).createOrReplaceTempView(GOLD)
    same = " AND ".join(f"_lode_s.{quoted(name)} <=> {DELTA}.{quoted(name)}" for name in names)
    met = f"SELECT _lode_s.* FROM ({plan.unpack_sql}) AS _lode_s LEFT SEMI JOIN {DELTA} ON {same}"
    steps = ((STORED, met), (BOTH, plan.both_sql), (FOLDED, plan.fold_sql))
    return ReplaceBatch(gold, plan.stored_keys, keys.rows, spark.sql(nested(steps, plan.store_sql)), span.rows)
