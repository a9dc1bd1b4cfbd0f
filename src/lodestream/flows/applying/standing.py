"""Where a table stands in its feed, and the way back when the feed was rolled back."""

from __future__ import annotations

from lodestream.errors import NotOurTable, SourceRecreated, SourceRewritten
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.publish import Base
from lodestream.tables.snapshot import position_in
from lodestream.tables.store import TableStore


def standing(base: Base, feed: IcebergStore, table: str) -> int | None:
    """The snapshot of the feed that a table, or its marks, has applied; None before everything."""
    if base.stamp is None:
        return None
    place = base.stamp.positions.get(feed.name)
    if place is None:
        raise NotOurTable(
            f"{table} was kept without a change feed until now",
            why="its rows say which input they contain, but not which changes made them",
            fix=f"rename or drop {table}, and it is made again from its input with a feed",
        )
    if place["uuid"] != feed.uuid:
        raise SourceRecreated(
            f"{feed.name} was dropped and created again",
            why=f"{table} has applied table {place['uuid']}, the catalog now has {feed.uuid}",
            fix=f"drop {table} and its siblings, and they are made again from their input",
        )
    return int(place["snapshot"])


def follow_back(feed: IcebergStore, marks: TableStore, state: TableStore) -> None:
    """Marks and table go back to the newest place that the feed still has.

    The marks first: only a table that is ahead of its feed brings us here again after a crash.
    """
    history = {snapshot.id for snapshot in feed.ancestors(feed.head())}
    for store in (marks, state):
        store.refresh()
        _go_back(store, feed.name, history)


def _go_back(store: TableStore, feed: str, history: set[int]) -> None:
    for snapshot in store.ancestors(store.head()):
        place = position_in(snapshot, feed)
        made = place is None and snapshot.total_rows == 0  # as it was created: it holds nothing of the feed
        if made or (place is not None and place["snapshot"] in history):
            if snapshot != store.head():
                store.rollback(snapshot.id)
            return
    raise SourceRewritten(
        f"{feed} was rolled back to before everything that {store.name} knows",
        why="the snapshots that would fit have expired",
        fix="drop the table and its marks: both are made again from the feed",
    )
