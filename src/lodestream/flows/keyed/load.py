"""Many rows at once: sorted by key, so that a key lies in one row group of a file and all others are skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, date_trunc

from lodestream.contracts.quoting import name as quoted
from lodestream.pipeline import Partition, parse_partition
from lodestream.tables.lake import Lake

_UNITS = {"years": "YEAR", "months": "MONTH", "days": "DAY", "hours": "HOUR"}


def load(
    lake: Lake,
    table: str,
    rows: DataFrame,
    keys: Sequence[str],
    partition_by: Sequence[str],
    branch: str,
    properties: Mapping[str, str],
) -> None:
    clusters = _clusters([parse_partition(one) for one in partition_by])
    ordered = rows.sortWithinPartitions(*(clusters or []), *map(quoted, keys))
    # One partition after the other: an open file for each of them would take the memory of a large table's history.
    lake.append(table, ordered, branch, properties, clustered=clusters is not None)


def _clusters(partitions: Sequence[Partition]) -> list[Column] | None:
    """What to sort by so that the rows of a partition come together; None where a filter cannot say it."""
    found: list[Column] = []
    for one in partitions:
        if one.transform == "identity":
            found.append(col(one.column))
        elif one.transform in _UNITS:
            found.append(date_trunc(_UNITS[one.transform], col(one.column)))
        else:
            return None
    return found
