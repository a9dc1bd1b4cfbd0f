"""A keyed table: the last change of each key wins, deletes included, and a feed says what changed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from lodestream.contracts import Contract
from lodestream.contracts.evolution import Step
from lodestream.errors import NotOurTable
from lodestream.flows.flow import Batch, Published, Span
from lodestream.flows.keyed.batch import KeyedBatch
from lodestream.flows.keyed.directory import Addresses
from lodestream.flows.keyed.evolving import evolve_keys, widen
from lodestream.flows.keyed.facts import Facts, FeedWatch
from lodestream.flows.keyed.follow import Follower, Level
from lodestream.flows.keyed.judge import PLACE, KeyedJudge
from lodestream.flows.keyed.keeper import DirectoryKeeper
from lodestream.flows.shape import ddl_of
from lodestream.flows.silver.contracted import Edits
from lodestream.flows.silver.flow import SilverFlow
from lodestream.flows.silver.judge import CARRIED, FILTERED, REASONS, WARNED
from lodestream.tables.feed import BATCH, ORDER, WEIGHT, feed_of, found_by, marks_of, position_in
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.order import parts, plain
from lodestream.tables.places_kept import kept_otherwise
from lodestream.tables.store import MAIN

# What a history adds to the columns; its rows are told apart by the first.
FROM, TO = "valid_from", "valid_to"
HIDDEN = frozenset((CARRIED, REASONS, FILTERED, WARNED))


class KeyedFlow(SilverFlow):
    """Publishes the feed, which carries the positions of the inputs, and then applies it to the table.

    The feed is the truth. A crash between the two leaves the table behind, and it catches up before the next batch.
    """

    steady = False
    dedups = False
    written: Facts | None = None  # what the last batch wrote to the feed
    _follower: Follower | None = None
    _behind = True
    _unmade = False  # whether feed, table and marks have yet to follow an edited contract

    @cached_property
    def feed(self) -> str:
        return feed_of(self.name)

    @cached_property
    def marks(self) -> str:
        return marks_of(self.name)

    @property
    def identity(self) -> Sequence[str]:
        """The columns that tell the rows of the table apart."""
        return self.keys

    @cached_property
    def columns(self) -> list[str]:
        """The table's own columns, as declared."""
        return plain(self.lake.whole(self.name)).columns

    @cached_property
    def watch(self) -> FeedWatch:
        return FeedWatch.over(self.identity[0], self.table.partition_by, self.lake.whole(self.name).schema)

    @cached_property
    def marked(self) -> DirectoryKeeper:
        """Knows which keys surely have no mark: most batches then read none of the marks, however many there are."""
        addresses = Addresses.over(self.keys, (), self.lake.whole(self.marks).schema)
        return DirectoryKeeper(self.lake, self.marks, addresses, fewest=1)

    @property
    def judges(self) -> bool:
        return True

    @cached_property
    def judge(self) -> KeyedJudge:
        return KeyedJudge(
            self.name, self.contract, self.table.filters, self.table.expectations, self.arrival, self.keys,
            self.table.sequence_by, self.table.delete_when,
        )  # fmt: skip

    def create(self) -> IcebergStore:
        shape = self.judged_shape()
        place = f"`{ORDER}` {shape[PLACE].dataType.simpleString()}"
        parts_now = StructType(self._parts(shape))
        own = ddl_of(shape, without=(PLACE,), required=self.contract.never_null if self.contract else ())
        found = self.unique.filters() if self.unique else {}
        state = self._open(self.name, f"{own}, {ddl_of(parts_now)}", tuple(self.table.partition_by), found)
        held = self.lake.whole(self.name)
        refused = kept_otherwise(self.name, held.columns, parts_now.names)
        if refused is not None:
            raise refused
        columns = ddl_of(plain(held).schema)
        feed = self.lake.open(self.feed, f"{columns}, {place}, `{WEIGHT}` INT, `{BATCH}` BIGINT")
        keys = ddl_of(StructType([field for field in shape if field.name in self.keys]))
        marks = self._open(self.marks, f"{keys}, {place}", (), {})
        if self.contract is not None:
            self._evolve(self.contract)
            evolve_keys(self.lake, self.marks, self.contract, self.keys)
        self._widen(shape)
        feed.refresh()
        self._follower = Follower(
            self.lake, self.run, self.lake.store(self.feed), state, marks, self.identity, self.watch
        )
        return feed

    def make(self, span: Span) -> Batch:
        frames = {source.name: source.read(span.since[source.name], span.to[source.name]) for source in self.sources}
        self.dead.settle(self.writer.store)
        return self.judged(frames, span)

    def judged(self, frames: Mapping[str, DataFrame], span: Span) -> KeyedBatch:
        return KeyedBatch(self, frames, span, self.catch_up())

    def catch_up(self) -> Level:
        """Before a batch is made: it is built on a table that has applied the whole feed."""
        self._behind = True
        return self.follower.catch_up()

    @property
    def tables(self) -> Sequence[str]:
        return (self.feed, self.name)

    def _evolve(self, wanted: Contract) -> Mapping[str, Sequence[Step]]:
        taken = super()._evolve(wanted)
        if taken[self.name]:
            self._renew()
        return taken

    def _widen(self, shape: StructType) -> None:
        """Places, and what a history adds, are of the types that `sequence_by` has now."""
        named = {ORDER: shape[PLACE].dataType, **{field.name: field.dataType for field in shape}}
        own = [name for name in named if name in (ORDER, FROM, TO)]
        wanted = StructType([*(StructField(name, named[name]) for name in own), *self._parts(shape)])
        widened = [widen(self.lake, table, wanted) for table in (*self.tables, self.marks)]
        if any(widened):
            self._renew()

    def _parts(self, shape: StructType) -> list[StructField]:
        place = shape[PLACE].dataType
        return parts(place) if isinstance(place, StructType) else []

    def _renew(self) -> None:
        # Rows are read as of a snapshot, with its columns: without a newer one these would be the old ones.
        self.lake.store(self.name).commit_empty(MAIN, {"lode.evolved": "true"})

    def _reread(self, edits: Edits) -> None:
        before = self.contract
        super()._reread(edits)
        self._unmade = self._unmade or self.contract != before
        if self._writer is not None and self._unmade:
            for derived in ("columns", "own", "watch", "marked"):
                self.__dict__.pop(derived, None)
            self.create()
        self._unmade = False

    def empty(self, span: Span) -> Batch:
        self._behind = True
        return super().empty(span)

    def step(self, rows: int) -> Published | None:
        published = super().step(rows)
        if self._writer is None or not self._behind:
            return published
        began = time.perf_counter()
        level = self.follower.catch_up({published.snapshot: self.written} if published and self.written else {})
        self._behind = False
        if published is not None and self.written is not None and self._applied(level) == published.snapshot:
            self.directory.follow(self.written, level.state)
            self.marked.follow(self.written.of_marks, level.marks)
        seconds = time.perf_counter() - began
        if published is None:
            return self._caught_up(level, seconds) if level.steps else None
        total = published.seconds["total"] + seconds
        return replace(published, seconds={**published.seconds, "apply": seconds, "total": total})

    def _applied(self, level: Level) -> int | None:
        place = position_in(level.state, self.feed)
        return None if place is None else int(place["snapshot"])

    def adopt(self) -> Published:
        raise NotOurTable(
            f"{self.name} holds rows that no change feed explains",
            why="the rows of a keyed table are its feed applied, and rows from elsewhere are in no feed",
            fix="rename or drop the table; its input fills it again",
        )

    def leave(self) -> None:
        self.follower.catch_up()
        self.follower.leave()
        super().leave()

    @property
    def follower(self) -> Follower:
        if self._follower is None:
            raise RuntimeError("prepare() first")
        return self._follower

    def judged_shape(self) -> StructType:
        """The columns of the table and `_place`, from the declared rows over empty inputs."""
        judged = self.judge.conformed(self._shape())
        return StructType([field for field in judged.schema if field.name not in HIDDEN])

    def _open(self, name: str, ddl: str, partition_by: tuple[str, ...], found: Mapping[str, str]) -> IcebergStore:
        return self.lake.open(
            name,
            ddl,
            partition_by=partition_by,
            properties=found_by(self.keys, partition_by, {**found, **self.table.properties}),
            comment=self.table.description or (self.contract.description if self.contract else None),
        )

    def _caught_up(self, level: Level, seconds: float) -> Published | None:
        """The table had been behind its feed, from before a crash: its readers have something new."""
        stamp = level.state.stamp
        if stamp is None:
            return None
        rows = {"in": 0, "out": level.state.added_rows}
        return Published(
            self.name, stamp.batch, level.state.id, stamp.positions, rows, 0, True, {"apply": seconds, "total": seconds}
        )
