"""Whether a delta can be kept in the types that its query gives: what it stores and finds again must be storable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, NullType, StructType

from lodestream.flows.gold.rebuild import query_rows
from lodestream.names import STATE_COLUMN
from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.plan import GoldPlan
from lodestream.tables.groupable import has_maps
from lodestream.tables.stored import unstorable


def stored_shape(spark: SparkSession, plan: GoldPlan, shapes: Mapping[str, DataFrame]) -> StructType | None:
    """What the plan stores; None when Spark refuses the query, which is said when it is run as it was written."""
    try:
        return query_rows(spark, plan, shapes).schema
    except AnalysisException:
        return None


def unkept(plan: GoldPlan, schema: StructType, version: int) -> str | None:
    """Why the rows of a delta cannot be kept in these types; None when they can."""
    hidden = _hidden(plan, schema)
    found = unstorable(hidden, version)
    if found is not None:
        name, kind = found[0].partition(".")[0], found[1]
        meaning = next((state.meaning for state in plan.state_columns if state.name == name), name)
        return f"{meaning} is of type {_said(kind)}, which no table can keep"
    for name, kind in _compared(plan, schema, hidden):
        if has_maps(kind):
            # Spark 4.1 sorts a map before it groups by it, and compiled code then loses the nulls among its values.
            return f"{name} holds a map, and Spark does not tell maps apart reliably"
    return None


def _hidden(plan: GoldPlan, schema: StructType) -> StructType:
    if plan.state_home == "table":
        return schema
    kept = schema[STATE_COLUMN].dataType if plan.state_home == "column" else None
    return kept if isinstance(kept, StructType) else StructType([])


def _compared(plan: GoldPlan, schema: StructType, hidden: StructType) -> Iterator[tuple[str, DataType]]:
    """What stored rows are grouped by: the keys of groups; of rows all that they have."""
    if plan.shape == "rows":
        yield from ((field.name, field.dataType) for field in schema)
        return
    known = {quoted(field.name): field.dataType for field in schema} | {f.name: f.dataType for f in hidden}
    for key, stored in plan.stored_keys:
        kind = known.get(stored, known.get(key))
        if kind is not None:
            yield f"group key {stored if stored in known else key}", kind


def _said(kind: DataType) -> str:
    return "void (NULL without a type)" if isinstance(kind, NullType) else kind.simpleString()
