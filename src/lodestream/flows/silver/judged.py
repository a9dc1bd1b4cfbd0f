"""A Silver batch held against its contract: judged once, counted, then written as dead letters and as rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Observation, Row
from pyspark.sql.functions import col, count, count_if, lit, size, struct, to_json, xxhash64

from lodestream.contracts.quoting import name as quoted
from lodestream.errors import AuditFailed
from lodestream.failpoints import reach
from lodestream.flows.flow import Batch, Span
from lodestream.flows.pruning import Pruning
from lodestream.flows.silver.accounting import EVENTS, events, unaccounted, with_beside
from lodestream.flows.silver.duplicates import KeySearch
from lodestream.flows.silver.judge import CARRIED, FILTERED, REASONS, WARNED
from lodestream.flows.silver.verdicts import Verdicts
from lodestream.tables.snapshot import Snapshot, Stamp

if TYPE_CHECKING:
    from lodestream.flows.silver.flow import SilverFlow

_AGAIN = "_again"


class JudgedBatch(Batch):
    """Judged once, counted, then written twice: dead letters and rows."""

    def __init__(self, flow: SilverFlow, frames: Mapping[str, DataFrame], span: Span) -> None:
        self._flow = flow
        self._span = span
        self._verdicts = Verdicts(flow, span.rows)
        self._duplicates: Observation | None = None
        try:
            self._verdicts.read(frames)
            self._judged, self._seen = self._verdicts.judged(self._count)
            self._refuse_taken()
            reach("judge.after", flow.name)
        except BaseException:
            self.release()  # nobody else can: a batch that failed here does not exist yet
            raise
        self.counts = {name: int(self._seen[name] or 0) for name in ("in", "dead", "filtered", "warned", "kept")}
        if self._flow.table.allow_no_rows and self._vanished > 0:
            self.counts = {**self.counts, "no_rows": self._vanished}
        self._notice_unknown()

    @property
    def judged(self) -> DataFrame:
        """Every row with its verdict: `_reasons`, `_filtered`, `_warned` and the raw row in `_lode`."""
        return self._judged

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        good = self._judged.where(self.claiming())
        rows = self._first_of_each_key(good) if self._flow.keys else good
        self._flow.lake.append(self._flow.name, rows.drop(CARRIED, REASONS, FILTERED, WARNED), branch, properties)

    def audit(self, snapshot: Snapshot) -> None:
        counts = self.counts
        self.account()
        if snapshot.stamp is not None:
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

    def account(self) -> None:
        """Raise when input rows have vanished in declared code."""
        if self._vanished > 0 and not self._flow.table.allow_no_rows:
            raise unaccounted(self._flow.name, self._vanished, self._span.rows)

    @property
    def _vanished(self) -> int:
        """How many rows of the input gave none."""
        if not self._flow.accounts:
            return 0
        return self._span.rows - int(self._seen[EVENTS] if EVENTS in self._seen else self._seen["in"])

    def notes(self) -> Mapping[str, str]:
        return self._flow.dead.attestation()

    def tidy(self, *, lost: bool) -> None:
        self._flow.dead.tidy(self._flow.writer.store, lost=lost)

    def companions(self, stamp: Stamp, place: str) -> None:
        if self.counts["dead"]:
            contract = self._flow.contract
            self._flow.dead.publish(self.letters(), stamp, place, contract.title if contract else None)

    def letters(self) -> DataFrame:
        """The rows that are dead letters."""
        dead = self._judged.where(size(REASONS) > 0)
        return with_beside(self._flow, dead, lambda: self._judged.where(self.claiming()))

    def release(self) -> None:
        self._verdicts.release()

    def _notice_unknown(self) -> None:
        unknown = self._flow.unknown.count(self._seen)
        self.counts = {**self.counts, **unknown}
        if unknown and (names := self._flow.unknown.news(self._seen)):
            self._flow.notice("field.unknown", fields=names, rows=unknown["unknown"])

    def _refuse_taken(self) -> None:
        """Rows whose unique values others have: known only when every row of the batch has been judged by itself."""
        unique = self._flow.unique
        if unique is None or not self._seen["kept"]:
            return
        stored = self._flow.lake.whole(self._flow.name)
        rows = unique.refused(self._judged, self.claiming(), stored, self._bound, self._positions, self._seen)
        self._judged = self._verdicts.keep(rows)
        self._seen = self._count(self._judged)

    def _count(self, judged: DataFrame) -> Row:
        """One job counts everything and finds the partitions that the rows lie in."""
        dead, filtered = size(REASONS) > 0, col(FILTERED).isNotNull()
        self._bound, self._near = (Pruning.over(some, judged.schema) for some in (self._flow.bound, self._flow.near))
        counted = judged.agg(
            count(lit(1)).alias("in"),
            count_if(dead).alias("dead"),
            count_if(~dead & filtered).alias("filtered"),
            count_if(~dead & ~filtered).alias("kept"),
            count_if(~dead & ~filtered & (size(WARNED) > 0)).alias("warned"),
            *(events(judged.schema[CARRIED].dataType) if self._flow.accounts and self._flow.multiplies else []),
            *self._flow.unknown.aggregates(self._span.rows),
            *(self._flow.unique.values(judged, self._span.rows, self.claiming()) if self._flow.unique else []),
            *(self._search_of_keys.columns(judged, self._span.rows, self.claiming()) if self._flow.dedups else []),
            *self.measures(),
        )
        return counted.collect()[0]

    def claiming(self) -> Column:
        """Rows that bring their values to the table."""
        return (size(REASONS) == 0) & col(FILTERED).isNull()

    def measures(self) -> list[Column]:
        """What else that job shall tell, for the writing of the rows."""
        return self._near.touched()

    def _first_of_each_key(self, good: DataFrame) -> DataFrame:
        """What came before is left out, and counted; nothing is sorted or looked up where surely nothing did."""
        flow, search = self._flow, self._search_of_keys
        flow.came = search.entries(self._seen)
        held = search.held(flow, good, self._seen, flow.known_keys() if flow.came is not None else None)
        if held is None and search.all_differ(self._seen, self.counts["kept"]):
            return good
        self._duplicates = Observation()
        marked = search.marked(good, held, self._order(good), _AGAIN)
        marked = marked.observe(self._duplicates, count_if(col(_AGAIN)).alias("duplicates"))
        return marked.where(~col(_AGAIN)).select(*good.columns)

    @property
    def _search_of_keys(self) -> KeySearch:
        return KeySearch(tuple(self._flow.keys), self._bound, self._near, self._flow.directory.addresses)

    def _count_duplicates(self) -> int:
        return int(self._duplicates.get["duplicates"]) if self._duplicates is not None else 0

    def _order(self, good: DataFrame) -> list[Column]:
        """The order in which rows come. Those that stand at one place, or at none, have one by their content."""
        places = self._positions
        if places and not self._flow.multiplies:
            return places
        own = [quoted(name) for name in good.columns if name not in (CARRIED, REASONS, FILTERED, WARNED)]
        return [*places, xxhash64(to_json(struct(*own)))]

    @property
    def _positions(self) -> list[Column]:
        """Where a row stands in its source; none for rows of another table."""
        raw = self._judged.select(f"{CARRIED}.*").columns
        return [col(f"{CARRIED}.{name}") for name in ("partition", "offset", "topic", "file", "row") if name in raw]
