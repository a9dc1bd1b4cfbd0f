"""Dead letters: every row that may not enter a table, with its raw bytes, coordinates and reasons."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, current_timestamp, lit, struct, to_json
from pyspark.sql.types import StructType

from lodestream.errors import CatalogUnavailable
from lodestream.failpoints import reach
from lodestream.flows.judge import CARRIED, REASONS
from lodestream.tables.jvm import catalog_errors
from lodestream.tables.lake import Lake
from lodestream.tables.publish import Moved, Writer
from lodestream.tables.snapshot import Stamp
from lodestream.tables.store import TableStore

SUFFIX = "__dead"
ATTESTED = "dead"
DDL = (
    "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, topic STRING, partition INT, "
    "offset BIGINT, timestamp TIMESTAMP, file STRING, row BIGINT, reasons ARRAY<STRING>, contract STRING, "
    "run STRING, batch BIGINT, dead_at TIMESTAMP, state STRING"
)
_COORDINATES = {
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "file": "string",
    "row": "bigint",
}


class DeadLetters:
    """The dead-letter table of one flow.

    Published before the batch it belongs to, so that no row can vanish. The batch's own snapshot names the dead-letter
    snapshot it goes with: what that does not name came from an attempt that was never published, and is removed.
    """

    def __init__(self, lake: Lake, table: str, run: str) -> None:
        self.name = table + SUFFIX
        self._lake = lake
        self._table = table
        self._run = run
        self._writer: Writer | None = None

    def settle(self, main: Stamp | None) -> None:
        """Remove letters of attempts that the table's `main` does not know: crashed, rolled back or overtaken."""
        if self._writer is None and not self._lake.exists(self.name):
            return
        store = self._open().store
        store.refresh()
        orphans = self._orphans(store, main)
        if orphans:
            # Run ids and batch numbers are our own: no quoting can be broken.
            conditions = " OR ".join(f"(run = '{one.run}' AND batch = {one.batch})" for one in orphans)
            with catalog_errors(f"clearing {self.name}"):
                self._lake.spark.sql(f"DELETE FROM {self._lake.identifier(self.name)} WHERE {conditions}")  # noqa: S608
            store.refresh()

    def attestation(self) -> dict[str, str]:
        """What the batch's snapshot says of its dead letters: everything up to this snapshot belongs to it."""
        head = self._writer.store.head() if self._writer else None
        return {ATTESTED: str(head.id)} if head else {}

    def publish(self, letters: DataFrame, stamp: Stamp, contract: str | None) -> None:
        """Commit the letters of one batch."""
        rows = self._rows(letters, stamp, contract)
        for _ in range(5):
            writer = self._open()
            try:
                staged = writer.stage(
                    writer.begin(), stamp, lambda branch, properties: self._append(rows, branch, properties)
                )
                reach("dead.staged", self._table)
                writer.publish(staged)
                writer.store.refresh()
                return
            except Moved:
                continue
        raise CatalogUnavailable(f"{self.name} keeps moving", why="maintenance changed it five times in a row")

    def _orphans(self, store: TableStore, main: Stamp | None) -> list[Stamp]:
        attested = main.notes.get(ATTESTED) if main else None
        found: list[Stamp] = []
        for snapshot in store.ancestors(store.head()):
            if attested is not None and snapshot.id == int(attested):
                return found
            if snapshot.stamp is not None:
                found.append(snapshot.stamp)
        # The attested snapshot has expired: what is as old as the table's own last batch belongs to it.
        return [one for one in found if main is None or attested is None or one.batch > main.batch]

    def _rows(self, letters: DataFrame, stamp: Stamp, contract: str | None) -> DataFrame:
        carried = letters.schema[CARRIED].dataType
        coordinates = _coordinates(carried)
        return letters.select(
            *[column.alias(name) for name, column in coordinates.items()],
            col(REASONS).alias("reasons"),
            lit(contract).cast("string").alias("contract"),
            lit(stamp.run).alias("run"),
            lit(stamp.batch).cast("bigint").alias("batch"),
            current_timestamp().alias("dead_at"),
            lit("open").alias("state"),
        )

    def _append(self, rows: DataFrame, branch: str, properties: Mapping[str, str]) -> None:
        self._lake.append(self.name, rows, branch, properties)

    def _open(self) -> Writer:
        if self._writer is None:
            self._writer = Writer(self._lake.open(self.name, DDL), self._run, alone=False)
            self._writer.sweep()
        return self._writer


def _coordinates(carried: object) -> dict[str, Column]:
    """What is known of the raw row; a row from another table is kept whole, as JSON."""
    fields = carried.names if isinstance(carried, StructType) else []
    known = {
        name: (col(f"{CARRIED}.`{name}`") if name in fields else lit(None)).cast(kind)
        for name, kind in _COORDINATES.items()
    }
    if "value" not in fields:
        known["value"] = to_json(struct(f"{CARRIED}.*") if fields else struct("*")).cast("binary")
    return known
