"""The event log as a table: `lode.events`, for queries beside the data."""

from __future__ import annotations

import json
import logging
import threading
import time

import pyarrow as pa
from pyspark.sql import SparkSession

from lodestream.observe import Event, EventLog
from lodestream.tables.lake import Lake

log = logging.getLogger(__name__)

NAME = "lode.events"
_FACTS = "run STRING, event STRING, table STRING, batch BIGINT, rows_in BIGINT, rows_out BIGINT, facts STRING"
DDL = f"time TIMESTAMP, {_FACTS}"
_NUMBERS = ("micros", "batch", "rows_in", "rows_out")
_COLUMNS = ("micros", "run", "event", "table", "batch", "rows_in", "rows_out", "facts")
_SCHEMA = pa.schema([(name, pa.int64() if name in _NUMBERS else pa.string()) for name in _COLUMNS])
# Seconds between two appends: a job of its own, so not with every batch.
_INTERVAL = 60.0


class EventTable:
    """Appends what it has heard, now and then and at the end. The log file stays the complete record."""

    needs_java = True

    def __init__(self, spark: SparkSession, catalog: str, events: EventLog) -> None:
        self._lake = Lake(spark.newSession(), catalog)
        self._lock = threading.Lock()
        self._gathered: list[Event] = []
        self._unsubscribe = events.subscribe(self._gather)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="lode-events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Write the rest. A catalog that is down costs the table some rows, never the run its end."""
        self._ended.set()
        self._thread.join(30)
        self._flush()
        self._unsubscribe()

    def _gather(self, event: Event) -> None:
        with self._lock:
            self._gathered.append(event)

    def _taken(self) -> list[Event]:
        with self._lock:
            taken, self._gathered = self._gathered, []
        return taken

    def _work(self) -> None:
        while not self._ended.wait(_INTERVAL):
            self._flush()

    def _flush(self) -> None:
        taken = self._taken()
        if not taken:
            return
        began = time.perf_counter()
        try:
            self._lake.open(NAME, DDL, partition_by=["days(time)"])
            # As Arrow: rows of Python objects would start Python workers, for this alone.
            gathered = pa.Table.from_arrays([*zip(*map(_row, taken), strict=True)], schema=_SCHEMA)
            rows = self._lake.spark.createDataFrame(gathered)
            rows = rows.selectExpr("timestamp_micros(micros) AS time", "* EXCEPT (micros)").coalesce(1)
            rows.writeTo(self._lake.identifier(NAME)).append()
        except Exception as error:
            log.warning("events.unwritten rows=%d error=%s", len(taken), error)
            return
        log.debug("events.written rows=%d ms=%d", len(taken), (time.perf_counter() - began) * 1000)


def _row(event: Event) -> tuple[int, str, str, str | None, int | None, int | None, int | None, str]:
    facts = event.facts()
    rows, batch, micros = facts.get("rows"), facts.get("batch"), round(event.time * 1_000_000)
    counts = rows if isinstance(rows, dict) else {}
    told = json.dumps(facts, default=str)
    return (micros, event.run, event.name, event.table, batch, counts.get("in"), counts.get("out"), told)
