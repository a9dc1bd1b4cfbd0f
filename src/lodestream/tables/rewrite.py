"""Put rows in the place of whole data files, in one commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from lodestream.tables.hidden import with_hidden
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.jvm import catalog_errors
from lodestream.tables.lake import Lake, finish, written_files
from lodestream.tables.publish import Moved


def rewrite_files(
    lake: Lake,
    store: IcebergStore,
    files: Iterable[str],
    rows: DataFrame,
    branch: str,
    properties: Mapping[str, str],
    *,
    same: bool = False,
) -> None:
    """`same` rows are what the files say already: then readers of changes pass over it, as over a compaction."""
    with catalog_errors(f"rewriting files of {store.name}"), with_hidden(lake.spark._jvm, store.table) as changing:
        came = written_files(lake.spark, changing.table, rows)
        gone = list(_found(store.table, branch, set(files)))
        commit = changing.begin.newRewrite() if same else changing.begin.newOverwrite()
        for file in gone:
            commit.deleteFile(file)
        for file in came:
            commit.addFile(file)
        finish(commit, branch, properties)


def branch_head(store: IcebergStore, branch: str) -> int:
    store.refresh()
    head = store.ref(branch)
    if head is None:
        raise Moved(store.name)  # another run swept it away
    return head.id


def _found(table: Any, branch: str, wanted: set[str]) -> Iterable[Any]:
    tasks = table.newScan().useRef(branch).planFiles()
    try:
        for task in tasks.iterator():
            if task.file().location() in wanted:
                wanted.discard(task.file().location())
                yield task.file()
    finally:
        tasks.close()
