"""Dead letters: every row that may not enter a table, with its raw bytes, coordinates and reasons."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, current_timestamp, lit, struct, to_json
from pyspark.sql.types import StructType

from lodestream.errors import CatalogUnavailable, LodeError
from lodestream.failpoints import reach
from lodestream.flows.judge import CARRIED, REASONS
from lodestream.flows.letters import ATTEMPT, BASE, Verdict, judge_letters
from lodestream.tables.jvm import catalog_errors
from lodestream.tables.lake import Lake
from lodestream.tables.publish import Moved, Writer
from lodestream.tables.snapshot import Stamp
from lodestream.tables.store import TableStore

SUFFIX = "__dead"
# In the batch's own snapshot: the attempt whose letters belong to it, and up to where all letters are decided.
OWN = "dead"
SETTLED = "dead-settled"
DDL = (
    "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, topic STRING, partition INT, "
    "offset BIGINT, timestamp TIMESTAMP, file STRING, row BIGINT, reasons ARRAY<STRING>, contract STRING, "
    "run STRING, batch BIGINT, attempt STRING, dead_at TIMESTAMP, state STRING"
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

    Published before the batch it belongs to, so that no row can vanish. The batch's own snapshot names the attempt
    whose letters it goes with; letters of attempts that can no longer be published are removed.
    """

    def __init__(self, lake: Lake, table: str, run: str) -> None:
        self.name = table + SUFFIX
        self._lake = lake
        self._table = table
        self._run = run
        self._writer: Writer | None = None
        self._own: str | None = None
        self._verdict = Verdict()

    def settle(self, main: TableStore) -> None:
        """Remove letters of attempts that `main` does not know and can never learn of: crashed, lost, rolled back."""
        self._own = None
        if self._writer is None and not self.exists():
            return
        store = self._open().store
        # In this order: whatever head a letter was built on, the table has had it by the time we look there.
        store.refresh()
        main.refresh()
        self._verdict = judge_letters(store, main, OWN, SETTLED)
        orphans = {*self._verdict.orphans, *self._expired_orphans(store, self._verdict)}
        if orphans:
            self.remove(orphans)

    def tidy(self, main: TableStore, *, lost: bool) -> None:
        """Once the batch is published, attempts that were open before are decided; once it is lost, ours is."""
        if self._verdict.open or lost:
            with suppress(LodeError):  # the next batch settles again
                self.settle(main)

    def attestation(self) -> dict[str, str]:
        """What the batch's snapshot says of its dead letters."""
        own = {OWN: self._own} if self._own else {}
        settled = {SETTLED: str(self._verdict.settled)} if self._verdict.settled is not None else {}
        return {**own, **settled}

    def publish(self, letters: DataFrame, stamp: Stamp, place: str, contract: str | None) -> None:
        """Commit the letters of a batch that builds on `place` of its table."""
        for _ in range(5):
            # Each attempt has its own name: one whose answer was lost may still land, beside the next.
            attempt = uuid.uuid4().hex[:12]
            marked = replace(stamp, notes={**stamp.notes, ATTEMPT: attempt, BASE: place})
            writer = self._open()
            try:
                write = partial(self.append, letters, marked, contract)
                staged = writer.stage(writer.begin(), marked, write)
                reach("dead.staged", self._table)
                writer.publish(staged)
            except Moved:
                continue
            self._own = attempt
            return
        raise CatalogUnavailable(f"{self.name} keeps moving", why="it was changed five times in a row")

    def exists(self) -> bool:
        return self._lake.exists(self.name)

    def create(self) -> TableStore:
        return self._lake.open(self.name, DDL)

    def append(
        self, letters: DataFrame, stamp: Stamp, contract: str | None, branch: str, properties: Mapping[str, str]
    ) -> None:
        self._lake.append(self.name, _rows(letters, stamp, contract), branch, properties)

    def remove(self, attempts: Iterable[str]) -> None:
        # Attempts are named by us, so no quoting can be broken; and short, so that whole files go at once.
        names = ", ".join(f"'{one}'" for one in sorted(attempts))
        with catalog_errors(f"clearing {self.name}"):
            self._lake.spark.sql(f"DELETE FROM {self._lake.identifier(self.name)} WHERE attempt IN ({names})")  # noqa: S608

    def attempts_after(self, batch: int, snapshot: int) -> set[str]:
        """From the rows of one snapshot: letters that came later are not ours to judge now."""
        later = self._lake.whole(self.name, snapshot).where(col("batch") > batch)
        return {row.attempt for row in later.select("attempt").distinct().collect()}

    def _expired_orphans(self, store: TableStore, verdict: Verdict) -> set[str]:
        head = store.head()
        if verdict.beyond is None or head is None:
            return set()
        return self.attempts_after(verdict.beyond, head.id) - set(verdict.open)

    def _open(self) -> Writer:
        if self._writer is None:
            writer = Writer(self.create(), self._run, alone=False)
            writer.sweep()
            self._writer = writer
        return self._writer


def _rows(letters: DataFrame, stamp: Stamp, contract: str | None) -> DataFrame:
    coordinates = _coordinates(letters.schema[CARRIED].dataType)
    return letters.select(
        *[column.alias(name) for name, column in coordinates.items()],
        col(REASONS).alias("reasons"),
        lit(contract).cast("string").alias("contract"),
        lit(stamp.run).alias("run"),
        lit(stamp.batch).cast("bigint").alias("batch"),
        lit(stamp.notes[ATTEMPT]).alias("attempt"),
        current_timestamp().alias("dead_at"),
        lit("open").alias("state"),
    )


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
