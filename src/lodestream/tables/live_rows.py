"""How many rows a reader finds in a table with delete files, counted in its files where its history does not tell."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from lodestream.tables.snapshot import summed

if TYPE_CHECKING:
    from lodestream.tables.inspect import TableView

_AT_ONCE = 8
# From this format version on a delete goes with its data file, so that totals stay right.
_BITMAPS = 3


def counted(view: TableView) -> int | None:
    """From the table's manifests and its delete files; None where the deletes do not name their rows."""
    head = view.head()
    if head is None:
        return 0
    if summed(head, "total-equality-deletes"):
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
