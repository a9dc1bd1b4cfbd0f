"""A Silver batch held against its contract: judged once, counted, then written as dead letters and as rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, Row, Window
from pyspark.sql.functions import array, broadcast, col, count, count_if, lit, row_number, size

from lodestream.errors import AuditFailed
from lodestream.failpoints import reach
from lodestream.flows.flow import Batch, Span
from lodestream.flows.judge import CARRIED, ERROR, FILTERED, REASONS, WARNED
from lodestream.flows.shape import only_touched, partition_columns, touched
from lodestream.pipeline import Partition
from lodestream.tables.snapshot import Snapshot, Stamp

if TYPE_CHECKING:
    from lodestream.flows.silver import SilverFlow

# Above this many rows a batch is kept on disk while it is judged, so that memory does not follow its size.
_MOST_IN_MEMORY = 50_000
_RANK, _KNOWN, _AGAIN = "_rank", "_known", "_again"


class JudgedBatch(Batch):
    """Judged once, counted, then written twice: dead letters and rows."""

    def __init__(self, flow: SilverFlow, frames: Mapping[str, DataFrame], span: Span) -> None:
        self._flow = flow
        self._span = span
        self._kept: list[DataFrame] = []
        self._duplicates: Observation | None = None
        self._level = StorageLevel.MEMORY_AND_DISK if span.rows <= _MOST_IN_MEMORY else StorageLevel.DISK_ONLY
        try:
            self._judged = self._keep(self._judge(frames))
            self._seen = self._count()
            reach("judge.after", flow.name)
        except BaseException:
            self.release()  # nobody else can: a batch that failed here does not exist yet
            raise
        self.counts = {name: int(self._seen[name] or 0) for name in ("in", "dead", "filtered", "warned", "kept")}

    @property
    def judged(self) -> DataFrame:
        """Every row with its verdict: `_reasons`, `_filtered`, `_warned` and the raw row in `_lode`."""
        return self._judged

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        good = self._judged.where((size(REASONS) == 0) & col(FILTERED).isNull())
        rows = self._first_of_each_key(good) if self._flow.keys else good
        self._flow.lake.append(self._flow.name, rows.drop(CARRIED, REASONS, FILTERED, WARNED), branch, properties)

    def audit(self, snapshot: Snapshot) -> None:
        counts = self.counts
        lost = self._span.rows - counts["in"]
        if lost > 0 and self._flow.decode is not None:
            raise AuditFailed(
                f"{self._flow.name}: {lost:,} of {self._span.rows:,} input rows are unaccounted for",
                why="the function dropped rows that neither a filter nor the contract explains",
                fix="declare the condition: filters={'name': 'rows to keep'}",
            )
        if self._flow.limits is not None and snapshot.stamp is not None:
            self._flow.limits.check(self._judged, snapshot.stamp.batch, counts["in"], counts["dead"])
        duplicates = self._count_duplicates()
        self.counts = {**counts, "duplicates": duplicates}
        if snapshot.added_rows + duplicates != counts["kept"]:
            beside = f" and {duplicates:,} duplicates" if duplicates else ""
            raise AuditFailed(
                f"{self._flow.name}: {snapshot.added_rows:,} rows{beside} were written"
                f" where {counts['kept']:,} were counted",
                why="the declared function gives other rows each time it runs (random values, the clock)",
                fix="make the function depend on its inputs alone",
            )

    def notes(self) -> Mapping[str, str]:
        return self._flow.dead.attestation()

    def tidy(self, *, lost: bool) -> None:
        self._flow.dead.tidy(self._flow.writer.store, lost=lost)

    def companions(self, stamp: Stamp, place: str) -> None:
        if self.counts["dead"]:
            contract = self._flow.contract
            letters = self._judged.where(size(REASONS) > 0)
            self._flow.dead.publish(letters, stamp, place, contract.title if contract else None)

    def release(self) -> None:
        for frame in self._kept:
            frame.unpersist()

    def _judge(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        flow = self._flow
        driving = flow.driving
        given = dict(frames)
        if flow.decode is None:
            given[driving] = flow.carried(given[driving])
            return flow.judge.conformed(flow.transformed(given))
        decoded = self._keep(flow.decode(given[driving]))
        given[driving] = decoded.where(col(ERROR).isNull()).drop(ERROR)
        judged = flow.judge.conformed(flow.transformed(given))
        broken = decoded.where(col(ERROR).isNotNull())
        missing = {name: lit(None).cast(judged.schema[name].dataType) for name in judged.columns}
        missing |= {CARRIED: col(CARRIED), REASONS: array(col(ERROR)), WARNED: array().cast("array<string>")}
        return judged.unionByName(broken.select(*[column.alias(name) for name, column in missing.items()]))

    def _count(self) -> Row:
        """One job counts everything and finds the partitions that the rows lie in."""
        dead, filtered = size(REASONS) > 0, col(FILTERED).isNotNull()
        counted = self._judged.agg(
            count(lit(1)).alias("in"),
            count_if(dead).alias("dead"),
            count_if(~dead & filtered).alias("filtered"),
            count_if(~dead & ~filtered).alias("kept"),
            count_if(size(WARNED) > 0).alias("warned"),
            *touched(self._partitions),
        )
        return counted.collect()[0]

    @cached_property
    def _partitions(self) -> list[Partition]:
        return partition_columns(self._flow.table.partition_by, self._judged.columns) if self._flow.keys else []

    def _first_of_each_key(self, good: DataFrame) -> DataFrame:
        """First position wins within the batch; a key that the table has already is a duplicate. Both are counted."""
        keys = list(self._flow.keys)
        names = [name for name in ("partition", "offset", "file", "row") if name in self._raw_names]
        order = [col(f"{CARRIED}.{name}") for name in names]
        first = Window.partitionBy(*keys).orderBy(*(order or [lit(1)]))
        stored = only_touched(self._flow.lake.whole(self._flow.name), self._partitions, self._seen).select(*keys)
        known = stored.join(broadcast(good.select(*keys)), keys, "left_semi").distinct().withColumn(_KNOWN, lit(True))
        ranked = good.withColumn(_RANK, row_number().over(first)).join(broadcast(known), keys, "left")
        again = (col(_RANK) > 1) | col(_KNOWN).isNotNull()
        self._duplicates = Observation()
        marked = ranked.withColumn(_AGAIN, again).observe(self._duplicates, count_if(col(_AGAIN)).alias("duplicates"))
        return marked.where(~col(_AGAIN)).select(*good.columns)

    def _count_duplicates(self) -> int:
        return int(self._duplicates.get["duplicates"]) if self._duplicates is not None else 0

    @property
    def _raw_names(self) -> list[str]:
        return list(self._judged.select(f"{CARRIED}.*").columns)

    def _keep(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist(self._level))
        return frame
