"""What the protocol knows of a snapshot: who wrote it, from which input, up to where."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lodestream.tables.notes import ASOF, GUEST, HELD, PREFIX

Positions = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    id: int
    parent: int | None
    operation: str
    timestamp_ms: int
    summary: Mapping[str, str] = field(repr=False)
    schema_id: int | None = None

    @property
    def added_rows(self) -> int:
        return int(self.summary.get("added-records", "0"))

    @property
    def total_rows(self) -> int:
        return int(self.summary.get("total-records", "0"))

    @property
    def live_rows(self) -> int:
        """The rows that a reader finds: those that files hold without those that delete files take away."""
        return max(0, self.total_rows - int(self.summary.get("total-position-deletes", "0")))

    @property
    def stamp(self) -> Stamp | None:
        return Stamp.from_summary(self.summary)


@dataclass(frozen=True, slots=True)
class Stamp:
    """The `lode.*` properties of a published batch: the table's own checkpoint."""

    flow: str
    run: str
    batch: int
    positions: Positions
    started_from: Positions | None
    rows: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def asof(self) -> float | None:
        """Epoch seconds up to which the table holds everything its sources had."""
        return float(self.notes[ASOF]) if ASOF in self.notes else None

    @property
    def guest(self) -> bool:
        """Whether this batch came beside the run that keeps the table: it made no progress in the input."""
        return GUEST in self.notes

    def properties(self) -> dict[str, str]:
        """As snapshot properties: positions ride in the snapshot, or a crash between two writes would double rows."""
        named = {
            "flow": self.flow,
            "run": self.run,
            "batch": str(self.batch),
            "positions": _compact(self.positions),
            "from": _compact(self.started_from),
            "rows": _compact(dict(self.rows)),
        }
        return {PREFIX + key: value for key, value in {**named, **self.notes}.items()}

    def marks(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot was written with this stamp."""
        return self.properties().items() <= snapshot.summary.items()

    @classmethod
    def from_summary(cls, summary: Mapping[str, str]) -> Stamp | None:
        if PREFIX + "positions" not in summary:
            return None
        own = {key.removeprefix(PREFIX): value for key, value in summary.items() if key.startswith(PREFIX)}
        return cls(
            flow=own.pop("flow", ""),
            run=own.pop("run", ""),
            batch=int(own.pop("batch", "0")),
            positions=json.loads(own.pop("positions")),
            started_from=json.loads(own.pop("from", "null")),
            rows=json.loads(own.pop("rows", "{}")),
            notes=own,
        )


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def position_in(snapshot: Snapshot, feed: str) -> Mapping[str, Any] | None:
    """The position in the feed that a snapshot of its table has applied; None when it says nothing of the feed."""
    stamp = snapshot.stamp
    return stamp.positions.get(feed) if stamp else None


def live_rows(snapshots: Iterable[Snapshot]) -> int | None:
    """The rows that a reader finds in the first snapshot, from the history it heads; None when that does not tell.

    A compaction may leave delete files that were about replaced data files: then the totals of a snapshot subtract rows
    that nobody stores any more. What each commit added and took away is right all the same.
    """
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
    if summed(one, "total-equality-deletes"):
        return None
    fresh = one.added_rows == one.total_rows and not summed(one, "added-position-deletes")
    return one.total_rows if fresh or not summed(one, "total-position-deletes") else None


def _change(one: Snapshot) -> int | None:
    """How many rows a commit added on the whole; None when files went of which some rows had gone before."""
    if one.operation == "replace":
        return 0
    if summed(one, "total-equality-deletes") or summed(one, "deleted-records"):
        return None
    return one.added_rows - summed(one, "added-position-deletes") + summed(one, "removed-position-deletes")


def summed(one: Snapshot, key: str) -> int:
    return int(one.summary.get(key, "0"))
