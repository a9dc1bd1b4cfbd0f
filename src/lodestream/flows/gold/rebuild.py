"""A Gold table made anew from the whole of its inputs, and when that is the only way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from lodestream.flows.flow import Batch, Span
from lodestream.flows.gold.batches import DEFINITION, OverwriteBatch
from lodestream.flows.gold.state import StateBatch
from lodestream.flows.gold.views import Inputs
from lodestream.flows.usercode import transform
from lodestream.pipeline.gold.definition import SETTINGS, fingerprint
from lodestream.pipeline.gold.definition import definition as query_definition
from lodestream.pipeline.gold.plan import InputInfo, now_view
from lodestream.pipeline.reach import source_fingerprint

if TYPE_CHECKING:
    from lodestream.flows.gold.flow import GoldFlow


def must_rebuild(flow: GoldFlow, span: Span, inputs: Inputs) -> bool:
    """Nothing stored yet, or rows of another query; or a change whose rows or keys cannot be told."""
    if flow.rebuilding or span.previous is None or span.previous.notes.get(DEFINITION) != flow.definition:
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


def definition(flow: GoldFlow, infos: Sequence[InputInfo]) -> str:
    """Changes with what the rows are made by, so that stored rows fit what is added to them."""
    settings = {key: flow.lake.spark.conf.get(key, None) or "" for key in SETTINGS}
    if flow.plan is not None:
        return query_definition(flow.table.sql or "", flow.plan, infos, settings, flow.identities)
    columns = [f"{info.name}.{column} {kind}" for info in infos for column, kind in info.columns.items()]
    made_by = source_fingerprint(flow.table.function) if flow.table.function else str(flow.table.location)
    return fingerprint([made_by, *sorted(columns), *(f"{key}={value}" for key, value in sorted(settings.items()))])
