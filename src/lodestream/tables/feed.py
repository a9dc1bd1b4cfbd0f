"""A keyed table and its siblings: the feed of weighted changes, and marks of changes that its rows do not show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lodestream.tables.snapshot import Snapshot, position_in
from lodestream.tables.store import TableStore

# Small row groups with a filter each: the rows of a thousand keys are found without reading the others. The old rows
# of a table without partitions are anywhere, and few are in any row group; those of a partitioned one come together,
# and there the filters of all other partitions cost more than the rows.
_SPREAD, _TOGETHER = 512 * 1024, 2 * 1024 * 1024
_BYTES_PER_FILTER_BYTE = 32
# A file's footer lists its row groups, and is read as a whole for any one of them.
_FINDING = {
    "write.target-file-size-bytes": str(32 * 1024 * 1024),
    "write.merge.mode": "merge-on-read",
    "write.merge.distribution-mode": "none",
}


def found_by(keys: Sequence[str], partition_by: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table whose rows are looked up by key; what the user gave wins."""
    group = _TOGETHER if partition_by else _SPREAD
    sized = {
        "write.parquet.row-group-size-bytes": str(group),
        "write.parquet.bloom-filter-max-bytes": str(group // _BYTES_PER_FILTER_BYTE),
        f"write.parquet.bloom-filter-enabled.column.{keys[0]}": "true",
    }
    return {**_FINDING, **sized, **given}


def applied(store: TableStore, feed: str) -> Mapping[str, Any] | None:
    """The position in the feed that the table's `main` stands on."""
    return next((position for _, position in with_positions(store, feed)), None)


def with_positions(store: TableStore, feed: str) -> Iterator[tuple[Snapshot, Mapping[str, Any]]]:
    """The table's snapshots, newest first, that say which position in the feed they hold."""
    for snapshot in store.ancestors(store.head()):
        position = position_in(snapshot, feed)
        if position is not None:
            yield snapshot, position


def state_at(store: TableStore, feed: str, snapshot: int) -> Snapshot | None:
    """The newest of the table's own snapshots that holds exactly the feed up to `snapshot`; None when it has expired.

    What maintenance and evolution put on top holds the same rows, and has the columns as they are now.
    """
    newest: Snapshot | None = None
    for own in store.ancestors(store.head()):
        newest = newest or own
        position = position_in(own, feed)
        if position is not None and position["snapshot"] == snapshot:
            return newest
        newest = None if position is not None else newest
    return None
