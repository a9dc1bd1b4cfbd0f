"""A Gold table made anew from the whole of its inputs, and when that is the only way."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from lodestream.flows.flow import Batch, Span
from lodestream.flows.gold.batches import DEFINITION, OverwriteBatch
from lodestream.flows.gold.state import StateBatch
from lodestream.flows.gold.views import Inputs
from lodestream.flows.usercode import transform
from lodestream.pipeline import Table
from lodestream.pipeline.gold.plan import GoldPlan, now_view

if TYPE_CHECKING:
    from lodestream.flows.gold.flow import GoldFlow


def must_rebuild(flow: GoldFlow, span: Span, inputs: Inputs) -> bool:
    """Nothing stored yet, or rows of another query; or a change whose rows or keys cannot be told."""
    if span.previous is None or span.previous.notes.get(DEFINITION) != flow.definition:
        return True
    if flow.plan is None:
        looked = {one.table.name for one in flow.inputs if one.lookup}
        return not flow.keys or bool(looked & set(inputs.changed)) or not inputs.comparable()
    if flow.plan.strategy == "full":
        return True
    if any(flow.plan.on_lookup_change.get(name) == "full" for name in inputs.changed):
        return True
    return not inputs.comparable()


def rebuild(flow: GoldFlow, span: Span, inputs: Inputs) -> Batch:
    flow.expect(max(span.rows, flow.read_rows(span)))
    rows = recomputed(flow, {table.name: inputs.now(table.name) for table in flow.tables})
    if flow.plan is not None and flow.plan.state_home == "table":
        return StateBatch(flow, flow.plan, rows, span, rebuilt=True)
    return OverwriteBatch(flow, rows, span.rows, rebuilt=True)


def recomputed(flow: GoldFlow, whole: Mapping[str, DataFrame]) -> DataFrame:
    """What the declared query or function says over these inputs."""
    if flow.plan is None:
        return transform(flow.lake.spark, flow.table, {one.table.name: whole[one.table.name] for one in flow.inputs})
    for name, frame in whole.items():
        frame.createOrReplaceTempView(now_view(name))
    return flow.lake.spark.sql(flow.plan.full_sql)


def definition(table: Table, plan: GoldPlan | None) -> str:
    """Changes with the query and with the way it is kept, so that stored rows fit what is added to them."""
    if plan is not None:
        text = "\n".join([plan.strategy, table.sql or "", plan.store_sql or plan.full_sql])
    else:
        text = _source_text(table)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _source_text(table: Table) -> str:
    """A function is known by its text; one that has none, by its place."""
    try:
        return inspect.getsource(table.function) if table.function else str(table.location)
    except OSError:
        return str(table.location)
