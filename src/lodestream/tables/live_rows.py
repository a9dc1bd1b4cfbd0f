"""How many rows a reader finds in a table with delete files, without reading its rows.

A compaction replaces data files and may leave the delete files that were about them: then the totals of a snapshot
subtract rows that nobody stores any more. What each commit added and took away is right all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from lodestream.tables.notes import HELD, PREFIX
from lodestream.tables.snapshot import Snapshot

if TYPE_CHECKING:
    from lodestream.tables.inspect import TableView

_AT_ONCE = 8
# From this format version on a delete goes with its data file, so that totals stay right.
_BITMAPS = 3


def live_rows(snapshots: Iterable[Snapshot]) -> int | None:
    """The rows of the first snapshot, from the history it heads; None when that does not tell."""
    since = 0
    for one in snapshots:
        exact = _exact(one)
        if exact is not None:
            return exact + since
        change = _change(one)
        if change is None:
            return None
        since += change
        held = one.summary.get(PREFIX + HELD)
        if held is not None:
            return int(held) + since
    return None


def _exact(one: Snapshot) -> int | None:
    """The rows of a snapshot whose totals tell them: it has no deletes, or none that its files are older than."""
    if _number(one, "total-equality-deletes"):
        return None
    fresh = one.added_rows == one.total_rows and not _number(one, "added-position-deletes")
    return one.total_rows if fresh or not _number(one, "total-position-deletes") else None


def _change(one: Snapshot) -> int | None:
    """How many rows a commit added on the whole; None when files went of which some rows had gone before."""
    if one.operation == "replace":
        return 0
    if _number(one, "total-equality-deletes") or _number(one, "deleted-records"):
        return None
    return one.added_rows - _number(one, "added-position-deletes") + _number(one, "removed-position-deletes")


def _number(one: Snapshot, key: str) -> int:
    return int(one.summary.get(key, "0"))


def counted(view: TableView) -> int | None:
    """The same from the table's manifests and its delete files; None where the deletes do not name their rows."""
    head = view.head()
    if head is None:
        return 0
    if _number(head, "total-equality-deletes"):
        return None
    if view.table.format_version >= _BITMAPS:
        return head.live_rows
    tasks = list(view.table.scan(snapshot_id=head.id).plan_files())
    files = {one.file_path: one for task in tasks for one in task.delete_files}
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="lode-deletes") as pool:
        gone = dict(zip(files, pool.map(lambda path: _deleted(view.table.io, path), files), strict=True))
    stored = sum(task.file.record_count for task in tasks)
    taken = sum(gone[one.file_path][task.file.file_path] for task in tasks for one in task.delete_files)
    return int(stored - taken)


def _deleted(io: Any, path: str) -> Counter[str]:
    """How many rows of each data file a delete file takes away."""
    import pyarrow.parquet as pq

    with io.new_input(path).open() as opened:
        paths = pq.read_table(opened, columns=["file_path"]).column(0)
    return Counter({one["values"]: one["counts"] for one in paths.value_counts().to_pylist()})
