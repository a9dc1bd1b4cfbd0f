"""What one snapshot changed in a table, row by row, in an order that is the same each time. No JVM.

An append adds the rows of its files. A table that is replaced in place is compared with its snapshot before: files that
both have cancel out, and of the others the rows that only one side has are the change. Of a feed whose history has
expired the changes come batch by batch as they came, or, where files hold several batches, as the rows that they left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any
from zlib import crc32

from pyiceberg.io.pyarrow import ArrowScan

from lodestream.names import BATCH, WEIGHT, hidden_column
from lodestream.tables.inspect import TableView
from lodestream.tables.python_rows import python_rows
from lodestream.tables.snapshot import Snapshot

Row = Mapping[str, Any]
# A change of a snapshot: its number there, from 1; 1 or -1; the row.
Changed = tuple[int, int, Row]
# Files of a snapshot, and whether their rows have come (1) or gone (-1).
Side = tuple[int, Snapshot, Sequence[Any]]

_ROWS_AT_ONCE = 4_096
# Rows of both sides that are held against each other at once; a larger change is looked at in parts.
MOST_COMPARED = 200_000


def changed_rows(view: TableView, snapshot: Snapshot, skip: int = 0, *, follows: bool = False) -> Iterator[Changed]:
    """The changes of a snapshot after the first `skip`.

    A snapshot whose parent has expired counts with all rows that it has, unless the caller `follows` that parent.
    """
    before = view.snapshot(snapshot.parent) if snapshot.parent is not None else None
    if before is None and not (follows and snapshot.operation in ("append", "replace")):
        return _everything(view, snapshot, skip)
    if snapshot.operation == "append":
        return _weighted(view, snapshot, _appended(view, snapshot), skip) if snapshot.added_rows else iter(())
    if before is None or snapshot.operation == "replace":  # compaction: the same rows in other files
        return iter(())
    return _compared(view, before, snapshot, skip)


def _everything(view: TableView, at: Snapshot, skip: int) -> Iterator[Changed]:
    """All rows of a snapshot. What a feed takes away must have come before: the names of files have no such order."""
    tasks, columns = _planned(view, at), _columns(view, at)
    if WEIGHT not in columns or BATCH not in columns:
        return _weighted(view, at, tasks, skip)
    batches = [_batch(task, columns[BATCH]) for task in tasks]
    if None in batches:  # compacted
        return _net_changes(view, [(1, at, tasks)], skip)
    together = sorted(zip(batches, tasks, strict=True), key=lambda one: one[0] or 0)
    return _weighted(view, at, [task for _, task in together], skip)


def _columns(view: TableView, at: Snapshot) -> dict[str, int]:
    fields = view.table.scan(snapshot_id=at.id).projection().fields
    return {field.name: field.field_id for field in fields}


def _batch(task: Any, field: int) -> int | None:
    """The one batch that all rows of a file are of; None when they are of several, or it does not say."""
    least, most = ((bounds or {}).get(field) for bounds in (task.file.lower_bounds, task.file.upper_bounds))
    return int.from_bytes(least, "little", signed=True) if least is not None and least == most else None


def _weighted(view: TableView, at: Snapshot, tasks: Sequence[Any], skip: int) -> Iterator[Changed]:
    """The rows of files in their order; those of a feed say their weight themselves, and marks have none."""
    number = 0
    for task in tasks:
        if not task.delete_files and number + task.file.record_count <= skip:
            number += task.file.record_count
            continue
        for row in _rows(view, at, task):
            number += 1
            weight = row.get(WEIGHT, 1)
            if number > skip and weight:
                yield number, weight, _visible(row)


def _compared(view: TableView, before: Snapshot, after: Snapshot, skip: int) -> Iterator[Changed]:
    old, new = _planned(view, before), _planned(view, after)
    both = {*map(_identity, old)} & {*map(_identity, new)}
    gone = [task for task in old if _identity(task) not in both]
    come = [task for task in new if _identity(task) not in both]
    return _net_changes(view, [(-1, before, gone), (1, after, come)], skip)


def _net_changes(view: TableView, sides: Sequence[Side], skip: int) -> Iterator[Changed]:
    size = sum(task.file.record_count for _, _, tasks in sides for task in tasks)
    parts = -(-size // MOST_COMPARED) or 1
    # Everything that went comes before everything that came: a sink that knows rows by a key would lose an update else.
    signs = [(-1, 1)] if parts == 1 else [(-1,), (1,)]
    net = (_net(view, sides, part, parts, some) for some in signs for part in range(parts))
    for number, (weight, row) in enumerate(chain.from_iterable(net), 1):
        if number > skip:
            yield number, weight, row


def _net(
    view: TableView, sides: Sequence[Side], part: int, parts: int, signs: Sequence[int]
) -> Iterator[tuple[int, Row]]:
    """Rows that came more often than they went, or the other way: what went first, then what came."""
    times: Counter[str] = Counter()
    rows: dict[str, Row] = {}
    for side, at, tasks in sides:
        for raw in (one for task in tasks for one in _rows(view, at, task)):
            row = _visible(raw)
            text = repr(sorted(row.items()))
            if parts == 1 or crc32(text.encode()) % parts == part:
                times[text] += side * raw.get(WEIGHT, 1)
                rows.setdefault(text, row)
    for sign in signs:
        for text, weight in times.items():
            for _ in range(sign * weight):  # one for each copy
                yield sign, rows[text]


def _rows(view: TableView, at: Snapshot, task: Any) -> Iterator[dict[str, Any]]:
    """One file after the other: more at once would come in any order, and stay in memory."""
    scan = view.table.scan(snapshot_id=at.id)
    reader = ArrowScan(view.table.metadata, view.table.io, scan.projection(), scan.row_filter)
    for batch in reader.to_record_batches([task]):
        for start in range(0, len(batch), _ROWS_AT_ONCE):
            yield from python_rows(batch.slice(start, _ROWS_AT_ONCE))


def _planned(view: TableView, at: Snapshot) -> list[Any]:
    return _in_order(view.table.scan(snapshot_id=at.id).plan_files())


def _appended(view: TableView, snapshot: Snapshot) -> list[Any]:
    scan = view.table.incremental_append_scan(
        from_snapshot_id_exclusive=snapshot.parent, to_snapshot_id_inclusive=snapshot.id
    )
    return _in_order(scan.plan_files())


def _in_order(tasks: Any) -> list[Any]:
    return sorted(tasks, key=lambda task: str(task.file.file_path))


def _identity(task: Any) -> tuple[str, frozenset[tuple[str, Any]]]:
    """The same file with the same deletes has the same rows."""
    deletes = {(str(one.file_path), getattr(one, "content_offset", None)) for one in task.delete_files}
    return str(task.file.file_path), frozenset(deletes)


def _visible(row: Mapping[str, Any]) -> Row:
    return {name: value for name, value in row.items() if not hidden(name)}


def hidden(name: str) -> bool:
    """Whether a column is ours: the weight, the batch, or the order key or state that is stored beside a row."""
    return name in (WEIGHT, BATCH) or hidden_column(name)


def whole_rows(view: TableView, snapshot: Snapshot) -> Iterator[Changed]:
    """All rows that a snapshot holds."""
    return _weighted(view, snapshot, _planned(view, snapshot), 0)


def whole_arrow(view: TableView, snapshot: Snapshot) -> Any:
    """The same as one Arrow table, in memory, with the declared columns and their types."""
    # Of the snapshot: columns that were added since are in no schema of it.
    shown = tuple(name for name in _columns(view, snapshot) if not hidden(name))
    return view.table.scan(snapshot_id=snapshot.id, selected_fields=shown).to_arrow()
