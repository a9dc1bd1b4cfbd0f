"""Many rows at once: sorted by key, so that a key lies in one row group of a file and all others are skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame

from lodestream.contracts.quoting import name as quoted
from lodestream.flows.columns.pruning import Pruning
from lodestream.pipeline import parse_partition
from lodestream.tables.lake import Lake


def load(
    lake: Lake,
    table: str,
    rows: DataFrame,
    keys: Sequence[str],
    partition_by: Sequence[str],
    branch: str,
    properties: Mapping[str, str],
) -> None:
    clusters = _clusters(rows, partition_by)
    ordered = rows.sortWithinPartitions(*(clusters or []), *map(quoted, keys))
    # One partition after the other: an open file for each of them would take the memory of a large table's history.
    lake.append(table, ordered, branch, properties, clustered=clusters is not None)


def _clusters(rows: DataFrame, partition_by: Sequence[str]) -> list[Column] | None:
    """What to sort by so that the rows of a partition come together; None where a filter cannot say it."""
    known = Pruning.over(map(parse_partition, partition_by), rows.schema)
    return known.periods() if len(known.fields) == len(partition_by) else None
