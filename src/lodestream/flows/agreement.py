"""Inputs that were made from the same table must show the same state of it: a diamond is never seen half updated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lodestream.pipeline.ways import Ways
from lodestream.sources.source import Position
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Snapshot

# Per table, the snapshot that something was made from.
Made = Mapping[str, int | None]


class Agreement:
    """Chooses positions that belong together, the newest there are."""

    def __init__(self, lake: Lake, ways: Ways) -> None:
        self._lake = lake
        self._ways = ways
        self._stores: dict[str, IcebergStore] = {}
        self.alone = not ways.diamond

    def chosen(self, known: Mapping[str, Position], latest: Mapping[str, Position]) -> Mapping[str, Position] | None:
        """Positions between `known` and `latest`; None while no newer ones agree."""
        for store in self._stores.values():
            store.refresh()
        aimed = {name: self._led(name, known.get(name), position) for name, position in latest.items()}
        return aimed if self.alone else self._agreed(known, aimed)

    def _led(self, name: str, known: Position | None, latest: Position) -> Position:
        """The furthest position that a leader has published beyond ours, or the latest."""
        leaders = self._ways.leaders.get(name, ())
        if known is None or not leaders:
            return latest
        published = {position["snapshot"] for leader in leaders if (position := self._position(leader, name))}
        for snapshot in self._back(name, latest["snapshot"]):
            if snapshot.id == known["snapshot"]:
                break
            if snapshot.id in published:
                return {**latest, "snapshot": snapshot.id}
        return latest

    def _position(self, reader: str, name: str) -> Position | None:
        if not self._lake.exists(reader):
            return None
        store = self._store(reader)
        stamp = next((one.stamp for one in store.ancestors(store.head()) if one.stamp is not None), None)
        found: Position | None = stamp.positions.get(name) if stamp else None
        return found

    def _agreed(self, known: Mapping[str, Position], latest: Mapping[str, Position]) -> Mapping[str, Position] | None:
        at = {name: position["snapshot"] for name, position in latest.items()}
        while True:
            clash = self._clash({name: self._made(name, snapshot) for name, snapshot in at.items()})
            if clash is None:
                return {name: {**latest[name], "snapshot": snapshot} for name, snapshot in at.items()}
            shared, sides = clash
            ahead = self._ahead(shared, sides)
            older = self._before(ahead, shared, at[ahead], sides) if ahead else None
            if ahead is None or older is None:
                return None
            at[ahead] = self._not_behind(ahead, older, known.get(ahead))
            if at[ahead] is None:
                return None

    def _clash(self, made: Mapping[str, Made]) -> tuple[str, dict[str, int | None]] | None:
        """A table that two inputs show in different states, with what each of them shows."""
        for shared in sorted({table for one in made.values() for table in one}):
            sides = {name: one[shared] for name, one in made.items() if shared in one}
            if len(set(sides.values())) > 1:
                return shared, sides
        return None

    def _ahead(self, shared: str, sides: Mapping[str, int | None]) -> str | None:
        """The input that shows the newest state of the shared table."""
        store = self._store(shared)
        for snapshot in store.ancestors(store.head()):
            for name, seen in sides.items():
                if seen == snapshot.id:
                    return name
        return None

    def _before(self, name: str, shared: str, snapshot: int | None, sides: Mapping[str, int | None]) -> int | None:
        """The state of an input one batch earlier; the shared table itself goes straight to what the others show."""
        if name == shared:
            others = [seen for other, seen in sides.items() if other != name]
            return next((one.id for one in self._back(name, snapshot) if one.id in others), None)
        stamped = [one.id for one in self._back(name, snapshot) if one.stamp is not None][:2]
        return stamped[1] if len(stamped) == 2 else None

    def _not_behind(self, name: str, snapshot: int, known: Position | None) -> int | None:
        """What we have published is never taken back: older than that means to wait."""
        if known is None or known["snapshot"] is None:
            return snapshot
        if self._batch(name, known["snapshot"]) == self._batch(name, snapshot):
            return int(known["snapshot"])
        reached = any(one.id == known["snapshot"] for one in self._back(name, snapshot))
        return snapshot if reached else None

    def _made(self, name: str, snapshot: int | None) -> Made:
        """Everything a snapshot was made from, itself included."""
        found: dict[str, int | None] = {name: self._batch(name, snapshot)}
        stamp = next((one.stamp for one in self._back(name, snapshot) if one.stamp is not None), None)
        for upstream in self._ways.edges.get(name, ()):
            position = stamp.positions.get(upstream) if stamp else None
            if position is not None:
                found |= self._made(upstream, position["snapshot"])
        return found

    def _batch(self, name: str, snapshot: int | None) -> int | None:
        """The batch that a snapshot stands for: maintenance on top of it changes no row."""
        return next((one.id for one in self._back(name, snapshot) if one.stamp is not None), snapshot)

    def _back(self, name: str, snapshot: int | None) -> Iterator[Snapshot]:
        store = self._store(name)
        return store.ancestors(store.snapshot(snapshot) if snapshot is not None else None)

    def _store(self, name: str) -> IcebergStore:
        home = self._ways.homes.get(name, name)
        if home not in self._stores:
            self._stores[home] = self._lake.store(home)
        return self._stores[home]
