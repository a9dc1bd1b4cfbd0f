"""A Silver batch held against its contract, then written as dead letters and as rows: the first row of a key stays."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql.functions import col, count_if, struct

from lodestream.contracts.quoting import name as quoted
from lodestream.errors import AuditFailed
from lodestream.flows.batch import Batch, Facts
from lodestream.flows.judging.duplicates import MOST_BROADCAST, Found, KeySearch, Stored
from lodestream.flows.judging.judged_rows import JudgedRows
from lodestream.flows.judging.retention import KEY_HASH, key_hash
from lodestream.flows.letters.table import Lettered
from lodestream.flows.writing.repeat import Repeat
from lodestream.names import CARRIED, FILTERED, REASONS, WARNED
from lodestream.tables.groupable import content
from lodestream.tables.snapshot import Snapshot, Stamp

_AGAIN = "_lode_x_again"


class JudgedBatch(Batch):
    def __init__(self, rows: JudgedRows, lettered: Lettered) -> None:
        self.judged = rows
        self.counts = rows.counts
        self._terms = rows.terms
        self._lake = rows.terms.rows.lake
        self._lettered = lettered
        self._repeat = Repeat(rows)
        self._came: list[int] | None = None
        self._duplicates: Observation | None = None

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        good = self._repeat.watched(self.judged.rows.where(self.judged.claiming))
        rows = self._first_of_each_key(good) if self._terms.keys else good
        with self._repeat.raising():
            self._lake.append(self._terms.name, rows.drop(CARRIED, REASONS, FILTERED, WARNED), branch, properties)

    def audit(self, snapshot: Snapshot) -> None:
        counts = self.counts
        self._repeat.compare()
        self.judged.account()
        if self._terms.limits is not None and snapshot.stamp is not None:
            self._terms.limits.check(self.judged.verdicts, snapshot.stamp.batch, counts["in"], counts["dead"])
        duplicates = self._count_duplicates()
        self.counts = {**counts, "duplicates": duplicates}
        if snapshot.added_rows + duplicates != counts["kept"]:
            beside = f" and {duplicates:,} duplicates" if duplicates else ""
            raise AuditFailed(
                f"{self._terms.name}: {snapshot.added_rows:,} rows{beside} were written"
                f" where {counts['kept']:,} were counted",
                why="the declared function gives other rows each time it runs (random values, the clock)",
                fix="make the function depend on its inputs alone",
            )

    def facts(self) -> Facts | None:
        return Facts(came=len(self._came), entries=tuple(self._came)) if self._came is not None else None

    def notes(self) -> Mapping[str, str]:
        return self._lettered.notes()

    def tidy(self, *, lost: bool) -> None:
        self._lettered.tidy(lost=lost)

    def companions(self, stamp: Stamp, main_version: str) -> None:
        if self.counts["dead"]:
            self._lettered.publish(self.judged.letters(), stamp, main_version)

    def release(self) -> None:
        self.judged.release()

    def _first_of_each_key(self, good: DataFrame) -> DataFrame:
        """What came before is left out, and counted; nothing is sorted or looked up where surely nothing did."""
        search, store = self.judged.search(), self._lettered.main
        stored = Stored(self._lake, self._terms.name, store.head())
        found = self._by_hash(search, stored) if self.judged.made_again else self._by_key(search, good, stored)
        if found.none:
            return good
        self._duplicates = Observation()
        marked = search.marked(good, found, self._order(good), _AGAIN)
        marked = marked.observe(self._duplicates, count_if(col(_AGAIN)).alias("duplicates"))
        return marked.where(~col(_AGAIN)).select(*good.columns)

    def _by_key(self, search: KeySearch, good: DataFrame, stored: Stored) -> Found:
        seen, head, store = self.judged.seen, stored.head, self._lettered.main
        self._came, known = search.entries(seen), None
        if self._came is not None and head is not None:
            known = self._terms.directory.at(head, store.ancestors(head))
        held = search.held(stored, good, seen, known)
        return Found(held, all_differ=search.all_differ(seen, self.counts["kept"]))

    def _by_hash(self, search: KeySearch, stored: Stored) -> Found:
        """Of a large batch the hashes of its keys are at hand: most batches have none twice, and bring none again."""
        hashes = self.judged.verdicts.where(self.judged.claiming).select(KEY_HASH)
        held = search.held_by_hash(stored, hashes, key_hash(self._terms)[0], self.judged.seen)
        few = 0
        if held is not None:
            few = self.judged.keep(held).count()
        twice = hashes.groupBy(KEY_HASH).count().where("count > 1").limit(1).count()
        return Found(held if few else None, all_differ=not twice, few=few <= MOST_BROADCAST)

    def _count_duplicates(self) -> int:
        return int(self._duplicates.get["duplicates"]) if self._duplicates is not None else 0

    def _order(self, good: DataFrame) -> list[Column]:
        """The order in which rows come. Those with the same coordinates, or none, have one by their content."""
        coordinates = self.judged.positions()
        if coordinates and not self._terms.rows.multiplies:
            return coordinates
        own = [quoted(name) for name in good.columns if name not in (CARRIED, REASONS, FILTERED, WARNED)]
        return [*coordinates, content(struct(*own))]
