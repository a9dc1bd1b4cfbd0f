"""A Gold table made anew from the whole of its inputs, and when that is the only way."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from lodestream.flows.batch import Batch, Span
from lodestream.flows.code.declared import transform
from lodestream.flows.gold.batches import OverwriteBatch
from lodestream.flows.gold.refusals import refuse_types
from lodestream.flows.gold.state import StateBatch
from lodestream.flows.gold.views import Inputs
from lodestream.pipeline.definition import made_by
from lodestream.pipeline.gold.definition import deciding, fingerprint
from lodestream.pipeline.gold.definition import definition as query_definition
from lodestream.pipeline.gold.plan import GoldPlan, InputInfo, now_view
from lodestream.tables.notes import DEFINITION

if TYPE_CHECKING:
    from lodestream.flows.gold.table import GoldTable

_SETTING = re.compile(r"(spark\.sql\.[\w.]+)=([^,}]*)")


def must_rebuild(gold: GoldTable, span: Span, inputs: Inputs) -> bool:
    """Nothing stored yet, or rows of another query; or a change whose rows or keys cannot be told."""
    if gold.rebuilding or span.previous is None or span.previous.notes.get(DEFINITION) != gold.definition:
        return True
    if gold.plan is None:
        looked = {one.table.name for one in gold.inputs if one.lookup}
        return not gold.keys or bool(looked & set(inputs.changed)) or not inputs.comparable()
    if gold.plan.strategy == "full" or gold.lost_state:
        return True
    if any(gold.plan.on_lookup_change.get(name) == "full" for name in inputs.changed):
        return True
    return not inputs.comparable()


def rebuild(gold: GoldTable, span: Span, inputs: Inputs) -> Batch:
    gold.expect(max(span.rows, gold.read_rows(span)))
    rows = recomputed(gold, {table.name: inputs.now(table.name) for table in gold.tables})
    refuse_types(gold.name, rows.schema, gold.table.properties)
    if gold.plan is not None and gold.plan.state_home == "table":
        return StateBatch(gold, gold.plan, rows, span, rebuilt=True)
    return OverwriteBatch(gold, rows, span.rows, rebuilt=True)


def recomputed(gold: GoldTable, whole: Mapping[str, DataFrame]) -> DataFrame:
    """What the declared query or function says over these inputs."""
    if gold.plan is None:
        return transform(gold.lake.spark, gold.table, {one.table.name: whole[one.table.name] for one in gold.inputs})
    return query_rows(gold.lake.spark, gold.plan, whole)


def query_rows(spark: SparkSession, plan: GoldPlan, whole: Mapping[str, DataFrame]) -> DataFrame:
    for name, frame in whole.items():
        frame.createOrReplaceTempView(now_view(name))
    return spark.sql(plan.full_sql)


def session_settings(spark: SparkSession) -> dict[str, str]:
    """In one call: the map's entries one by one would be as many as there are settings, a hundred milliseconds."""
    session: Any = spark._jsparkSession
    return dict(_SETTING.findall(str(session.conf().getAllAsJava().toString())))


def definition(gold: GoldTable, infos: Sequence[InputInfo]) -> str:
    """Changes with what the rows are made by, so that stored rows fit what is added to them."""
    settings = deciding(session_settings(gold.lake.spark))
    if gold.plan is not None:
        return query_definition(gold.table.sql or "", gold.plan, infos, settings, gold.identities)
    columns = [f"{info.name}.{column} {kind}" for info in infos for column, kind in info.columns.items()]
    made = made_by(gold.table)
    return fingerprint([made, *sorted(columns), *(f"{key}={value}" for key, value in sorted(settings.items()))])
