# ruff: noqa: S608 - the SQL is the plan's
"""Affected keys: which keys a change touches, their rows computed anew, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from lodestream.flows.batch import Batch, Span
from lodestream.flows.context import SMALL
from lodestream.flows.gold.batches import OverwriteBatch, ReplaceBatch, UnchangedBatch
from lodestream.flows.gold.views import Inputs, Keys
from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.plan import GOLD, KEYS, GoldPlan

if TYPE_CHECKING:
    from lodestream.flows.gold.table import GoldTable


def recompute_keys(gold: GoldTable, plan: GoldPlan, inputs: Inputs, span: Span) -> Batch:
    """The rows of the touched keys, from the inputs as they are after this batch."""
    spark = gold.lake.spark
    inputs.show()
    asked = " UNION ".join(plan.affected_sql[name] for name in inputs.changed)
    keys = Keys(spark.sql(asked))
    if keys.none:
        return UnchangedBatch(gold, span.rows)
    keys.rows.createOrReplaceTempView(KEYS)
    for name, pairs in plan.prune.items():
        inputs.show_now(name, keys.condition(pairs))
    rows = spark.sql(plan.recompute_sql or "")
    return replaced(gold, [(key, quoted(key)) for key in plan.affected_keys], keys, rows, span)


def replaced(gold: GoldTable, keys: Sequence[tuple[str, str]], touched: Keys, rows: DataFrame, span: Span) -> Batch:
    """A small table is written as a whole, which is one job; of a large one only the files that must change."""
    if gold.stored_rows > gold.small:
        return ReplaceBatch(gold, keys, touched.rows, rows, span.rows)
    spark = gold.lake.spark
    touched.rows.createOrReplaceTempView(KEYS)
    gold.stored().createOrReplaceTempView(GOLD)
    same = " AND ".join(f"{stored} <=> {KEYS}.{quoted(key)}" for key, stored in _of_gold(keys))
    kept = spark.sql(f"SELECT {GOLD}.* FROM {GOLD} LEFT ANTI JOIN {KEYS} ON {same}")
    whole = kept.unionByName(rows)
    return OverwriteBatch(gold, whole.coalesce(1) if span.rows <= SMALL else whole, span.rows)


def _of_gold(keys: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(key, f"{GOLD}.{stored}") for key, stored in keys]
