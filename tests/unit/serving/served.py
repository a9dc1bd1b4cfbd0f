"""Real Iceberg tables of each kind, without a JVM, and a sink that lists what it is given."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files

from lodestream.config import Config, load_config
from lodestream.serving import Delivery, Outlet, Sink
from lodestream.serving.deliver import Deliverer
from lodestream.serving.feed import TableFeed
from lodestream.tables.inspect import Inspector
from lodestream.tables.row_changes import whole_rows
from lodestream.tables.sink_positions import SinkPositions

EVENTS = pa.schema([("id", pa.int64()), ("name", pa.string())])
GOLD = pa.schema(
    [("day", pa.string()), ("sum", pa.int64()), ("_lode_state", pa.int64()), ("_lode_order_x", pa.string())]
)
KEYED = pa.schema([("id", pa.int64()), ("name", pa.string()), ("_lode_order_at", pa.int64())])
FEED = pa.schema([*EVENTS, ("_lode_order", pa.int64()), ("_weight", pa.int32()), ("_batch", pa.int64())])
SCHEMAS = {"bronze.events": EVENTS, "gold.daily": GOLD, "silver.people": KEYED, "silver.people__changes": FEED}


@dataclass
class Target:
    """What a sink has brought outside, and what shall go wrong there."""

    deliveries: list[tuple[str, bool, list[tuple[int, dict[str, Any]]]]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    opened: int = 0
    closed: int = 0
    fails: list[Exception] = field(default_factory=list)
    begin: Callable[[], None] = lambda: None

    @property
    def rows(self) -> Counter[str]:
        """The rows that somebody has who applied the deliveries."""
        found: Counter[str] = Counter()
        for _, whole, changes in self.deliveries:
            found = Counter() if whole else found
            for weight, row in changes:
                found[text(row)] += weight
        return +found


@dataclass(frozen=True)
class Listed(Sink):
    target: Target

    def open(self, table: str) -> Outlet:
        self.target.opened += 1
        return _Listed(self.target)


class _Listed(Outlet):
    def __init__(self, target: Target) -> None:
        self._target = target

    def deliver(self, delivery: Delivery) -> None:
        self._target.begin()
        if self._target.fails:
            raise self._target.fails.pop(0)
        changes = list(delivery.changes)
        self._target.ids += [one.id for one in changes]
        given = [(one.weight, dict(one.row)) for one in changes]
        self._target.deliveries.append((delivery.position, delivery.whole, given))

    def close(self) -> None:
        self._target.closed += 1


class Served:
    def __init__(self, folder: Path) -> None:
        (folder / "lode.toml").write_text("")
        self.folder = folder
        self.config: Config = load_config(folder)
        self.config.state_dir.mkdir()
        place = {"uri": self.config.catalog_uri().removeprefix("jdbc:"), "warehouse": self.config.warehouse()}
        self.catalog = load_catalog(self.config.catalog.name, type="sql", **place)
        for space in ("bronze", "silver", "gold"):
            self.catalog.create_namespace(space)
        self.positions = SinkPositions(self.config)
        self.batch = 0

    def table(self, name: str) -> Any:
        return self.catalog.create_table_if_not_exists(name, SCHEMAS[name])

    def append(self, name: str, rows: list[dict[str, Any]]) -> int:
        table = self.table(name)
        table.append(pa.Table.from_pylist(rows, SCHEMAS[name]))
        return int(table.current_snapshot().snapshot_id)

    def events(self, first: int, count: int) -> int:
        rows = [{"id": n, "name": f"n{n}"} for n in range(first, first + count)]
        return self.append("bronze.events", rows)

    def replace(self, rows: list[dict[str, Any]]) -> int:
        """One overwrite, as Gold is written."""
        table = self.table("gold.daily")
        with table.transaction() as moved, moved.update_snapshot().overwrite() as changed:
            for task in table.scan().plan_files():
                changed.delete_data_file(task.file)
            for file in _dataframe_to_data_files(moved.table_metadata, pa.Table.from_pylist(rows, GOLD), table.io):
                changed.append_data_file(file)
        return int(table.current_snapshot().snapshot_id)

    def change_people(self, changes: list[tuple[int, int, str]], people: list[tuple[int, str]]) -> int:
        """One batch of a keyed table: its feed, then the table that says how far it has applied it."""
        self.batch += 1
        rows = [{"id": n, "name": name, "_lode_order": 1, "_weight": w, "_batch": self.batch} for w, n, name in changes]
        feed = self.append("silver.people__changes", rows)
        table = self.table("silver.people")
        uuid = str(self.table("silver.people__changes").metadata.table_uuid)
        positions = json.dumps({"silver.people__changes": {"uuid": uuid, "snapshot": feed}})
        held = pa.Table.from_pylist([{"id": n, "name": name, "_lode_order_at": 7} for n, name in people], KEYED)
        table.overwrite(held, snapshot_properties={"lode.positions": positions})
        return feed

    def expire(self, name: str, *snapshots: int) -> None:
        """As Spark does: the child of a forgotten snapshot still names it. PyIceberg takes that away too."""
        with self._metadata(name) as found:
            found["snapshots"] = [one for one in found["snapshots"] if one["snapshot-id"] not in snapshots]
            found["snapshot-log"] = [one for one in found["snapshot-log"] if one["snapshot-id"] not in snapshots]

    def compact(self, name: str) -> int:
        """The same rows in another file, as Spark's rewrite says it."""
        table = self.table(name)
        rows = table.scan().to_arrow()
        with table.transaction() as moved, moved.update_snapshot().overwrite() as changed:
            for task in table.scan().plan_files():
                changed.delete_data_file(task.file)
            for file in _dataframe_to_data_files(moved.table_metadata, rows, table.io):
                changed.append_data_file(file)
        with self._metadata(name) as found:
            found["snapshots"][-1]["summary"]["operation"] = "replace"
        return int(table.current_snapshot().snapshot_id)

    @contextmanager
    def _metadata(self, name: str) -> Iterator[Any]:
        file = Path(self.table(name).metadata_location.removeprefix("file://"))
        found = json.loads(file.read_text())
        yield found
        file.write_text(json.dumps(found))

    def rows(self, name: str) -> Counter[str]:
        """The oracle: what a reader of the table finds."""
        view = Inspector(self.config).look(name)
        head = view.head() if view else None
        return Counter(text(row) for _, _, row in whole_rows(view, head)) if view and head else Counter()

    def deliverer(self, name: str, sink: Sink, *, feed: str | None = None) -> Deliverer:
        """As a new process has it."""
        return Deliverer(TableFeed(self.config, name, feed or name), sink, self.positions)


def text(row: Any) -> str:
    return json.dumps(row, sort_keys=True, default=str)
