"""Maintenance beside a live driver: compaction, expiry that keeps what readers need, removal of orphans."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

from protocol_oracle import BRONZE, DEAD, GOLD, SILVER, Project
from pyspark.sql import SparkSession

from lodestream.errors import LodeError
from lodestream.tables.inspect import Inspector

_READERS = {BRONZE: SILVER, SILVER: GOLD}
# Younger snapshots stay for whoever reads one; younger files may belong to a batch that is not yet committed.
_READING = 20.0
_WRITING = 90.0


class Upkeep(threading.Thread):
    """One round after another, from a Spark of its own. What a fault breaks is tried again in the next round."""

    def __init__(self, spark: SparkSession, project: Project, *, pause: float = 5.0) -> None:
        super().__init__(daemon=True)
        self._spark = spark
        self._project = project
        self._pause = pause
        self._halt = threading.Event()
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    def run(self) -> None:
        while not self._halt.wait(self._pause):
            for table in (BRONZE, SILVER, DEAD, GOLD):
                for work in (self._compact, self._expire, self._orphans):
                    self._attempt(work, table)

    def finish(self) -> None:
        self._halt.set()
        self.join(60)
        assert not self.is_alive()

    def _attempt(self, work: Any, table: str) -> None:
        name = work.__name__.strip("_")
        try:
            self.done[name] += work(table)
        except Exception as error:
            self.failed[f"{name}: {str(error).splitlines()[0][:80]}"] += 1

    def _compact(self, table: str) -> int:
        """How many files were rewritten."""
        options = "map('min-input-files', '4')"
        (row,) = self._call(f"rewrite_data_files(table => '{table}', options => {options})")
        return int(row["rewritten_data_files_count"])

    def _expire(self, table: str) -> int:
        if table == DEAD:
            return 0  # small, and its history says which letters are decided
        self._actions().expireSnapshots(self._table(table)).expireOlderThan(self._needed_since(table)).execute()
        return 1

    def _orphans(self, table: str) -> int:
        """Through the Java interface: the procedure refuses an age below a day."""
        before = int((time.time() - _WRITING) * 1000)
        found = self._actions().deleteOrphanFiles(self._table(table)).olderThan(before).execute()
        return sum(1 for _ in found.orphanFileLocations())

    def _needed_since(self, table: str) -> int:
        """The oldest of: the table's own positions, the place of its reader, what someone may be reading now."""
        inspector = Inspector(self._project.config)
        view, reader = inspector.look(table), inspector.look(_READERS.get(table, "none.none"))
        stamped = view.last_stamped() if view else None
        needed = [int((time.time() - _READING) * 1000), stamped.timestamp_ms if stamped else 0]
        if table in _READERS:
            place = _place(reader, table)
            found = view.snapshot(place) if view and place is not None else None
            needed.append(found.timestamp_ms if found else 0)
        return min(needed)

    def _call(self, procedure: str) -> list[Any]:
        return self._spark.sql(f"CALL lode.system.{procedure}").collect()

    def _actions(self) -> Any:
        jvm: Any = self._spark._jvm
        return jvm.org.apache.iceberg.spark.actions.SparkActions.get(self._spark._jsparkSession)

    def _table(self, name: str) -> Any:
        jvm: Any = self._spark._jvm
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self._spark._jsparkSession, f"lode.{name}")


def _place(reader: Any, table: str) -> int | None:
    stamped = reader.last_stamped() if reader else None
    place = stamped.stamp.positions.get(table, {}).get("snapshot") if stamped else None
    return int(place) if place is not None else None


class Onlooker(threading.Thread):
    """Reads Bronze over and over: whatever happens, it holds exactly what its positions say, each record once."""

    def __init__(self, project: Project) -> None:
        super().__init__(daemon=True)
        self._project = project
        self._halt = threading.Event()
        self.looks = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        while not self._halt.wait(2.0):
            try:
                self._look()
            except (LodeError, OSError):
                continue  # the catalog is away: that is the fault of the day

    def finish(self) -> None:
        self._halt.set()
        self.join(60)
        assert self.looks > 0
        assert not self.wrong, self.wrong[:3]

    def _look(self) -> None:
        view = Inspector(self._project.config).look(BRONZE)
        stamped = view.last_stamped() if view else None
        if view is None or stamped is None or stamped.stamp is None:
            return
        rows = view.table.scan(selected_fields=("partition", "offset")).to_arrow().to_pydict()
        held = Counter(zip(rows["partition"], rows["offset"], strict=True))
        offsets = stamped.stamp.positions["kafka"][self._project.topic]["offsets"]
        wanted = Counter((int(part), offset) for part, end in offsets.items() for offset in range(end))
        self.looks += 1
        if held != wanted:
            self.wrong.append(
                f"snapshot {stamped.id}: {(wanted - held).total()} missing, {(held - wanted).total()} more"
            )
