"""How many rows of a table wait for its reader, asked without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lodestream.tables.history import History
from lodestream.tables.snapshot import Snapshot


def table_pending(view: History | None, position: Mapping[str, Any] | None) -> int:
    """Rows that changed after the position. Where the position is not in the history, everything counts."""
    if view is None:
        return 0
    head = view.head()
    read = position.get("snapshot") if position is not None else None
    waiting = 0
    for snapshot in view.ancestors(head):
        if snapshot.id == read:
            return waiting
        waiting += _changed(snapshot)
        if snapshot.parent == read:  # the read itself may have expired; nobody has read what has no parent
            return waiting
    return head.live_rows if head is not None else 0


def _changed(snapshot: Snapshot) -> int:
    """Rows that a reader has still to look at; of a table that is replaced in place, at most."""
    if snapshot.operation == "replace":
        return 0
    gone = 0 if snapshot.operation == "append" else int(snapshot.summary.get("deleted-records", "0"))
    return snapshot.added_rows + gone
