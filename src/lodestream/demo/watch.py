"""What a live screen shows, gathered beside the run: table states, rates, the last Gold rows."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from lodestream.demo.show import GOLD, Demo
from lodestream.engine import Status, read_status
from lodestream.errors import LodeError
from lodestream.observe import BatchPublished
from lodestream.tables.inspect import Inspector

GOLD_COLUMNS = (
    "pickup_date",
    "pickup_day_of_week",
    "total_trips",
    "avg_trip_distance",
    "avg_trip_duration_min",
    "total_revenue",
    "avg_tip_percentage",
)
_PAUSE = 1.0
_WINDOW = 10.0
_GOLD_ROWS = 5


@dataclass
class Sight:
    """The newest of everything; replaced as a whole, so a reader never sees half of it."""

    status: Status | None = None
    gold: list[dict[str, Any]] = field(default_factory=list)
    trouble: str | None = None


class Watch:
    """Looks once a second while the block runs. `hear` takes the batches of the run."""

    def __init__(self, demo: Demo) -> None:
        self.sight = Sight()
        self._demo = demo
        self._inspector = Inspector(demo.project.config)
        self._published: dict[str, deque[tuple[float, int]]] = defaultdict(deque)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def hear(self, event: BatchPublished) -> None:
        if event.table:
            with self._lock:
                self._published[event.table].append((event.time, event.rows.get("out", 0)))

    def rate(self, table: str) -> float:
        """Rows a second over the last seconds."""
        since = time.time() - _WINDOW
        with self._lock:
            batches = self._published[table]
            while batches and batches[0][0] < since:
                batches.popleft()
            return sum(rows for _, rows in batches) / _WINDOW

    def _look(self) -> None:
        while not self._over.wait(_PAUSE):
            try:
                self.sight = Sight(read_status(self._demo.project), self._gold_rows())
                self._demo.generator.check()
            except LodeError as error:
                self.sight = Sight(self.sight.status, self.sight.gold, error.what)

    def _gold_rows(self) -> list[dict[str, Any]]:
        view = self._inspector.look(GOLD)
        if view is None or view.head() is None:
            return []
        rows: list[dict[str, Any]] = view.table.scan(selected_fields=GOLD_COLUMNS).to_arrow().to_pylist()
        return sorted(rows, key=lambda row: str(row["pickup_date"]))[-_GOLD_ROWS:]
