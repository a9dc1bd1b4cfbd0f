"""Apply the changes of one feed snapshot to its table, in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, expr

from lodestream.contracts.quoting import name as quoted
from lodestream.contracts.quoting import path
from lodestream.names import WEIGHT
from lodestream.tables.find import among
from lodestream.tables.jvm import catalog_errors
from lodestream.tables.lake import Lake
from lodestream.tables.replace import snapshot_properties

_CHANGE = "lode_change"


def merge_changes(
    lake: Lake,
    name: str,
    changes: DataFrame,
    branch: str,
    properties: Mapping[str, str],
    *,
    identity: Sequence[str],
    replaced: Sequence[object],
    within: Mapping[str, tuple[str, str]],
) -> None:
    """`changes` has one row per identity: weight 1 replaces or adds the row, -1 takes it away.

    `replaced` are the values that the first identity column has in stored rows which must go, when they are few, and
    `within` the lowest and highest value, as SQL, of partition columns there: files without such rows are not read.
    """
    target = f"branch_{branch}"
    conditions = [f"{path(target, one)} = {path(_CHANGE, one)}" for one in identity]
    listed = among(path(target, identity[0]), replaced, changes.schema[identity[0]].dataType)
    ranges = [f"{path(target, one)} BETWEEN {low} AND {high}" for one, (low, high) in within.items()]
    values = {one: col(path(_CHANGE, one)) for one in changes.columns if one != WEIGHT}
    condition = " AND ".join([*conditions, *filter(None, [listed]), *ranges])
    merge = (
        changes.alias(_CHANGE)
        .mergeInto(f"{lake.identifier(name)}.{quoted(target)}", expr(condition))
        .whenMatched(expr(f"{_CHANGE}.{WEIGHT} < 0"))
        .delete()
        .whenMatched()
        .update(values)
        .whenNotMatched(expr(f"{_CHANGE}.{WEIGHT} > 0"))
        .insert(values)
    )
    with catalog_errors(f"applying changes to {name}"), snapshot_properties(lake.spark, properties):
        merge.merge()
