"""A keyed table and its siblings: the feed, which carries the positions, and the marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pyspark.sql.types import StructField, StructType

from lodestream.contracts import Contract
from lodestream.errors import LodeError, NotOurTable
from lodestream.flows.applying.follower import Follower
from lodestream.flows.columns.shape import ddl_of
from lodestream.flows.columns.widen import evolve_keys, widen, widen_hidden
from lodestream.flows.context import Context
from lodestream.flows.judging.terms import Contracted, Terms
from lodestream.flows.parts import Home
from lodestream.flows.writing.home import follow_contract
from lodestream.flows.writing.siblings import Siblings
from lodestream.names import BATCH, ORDER, PLACE, VALID_FROM, VALID_TO, WEIGHT, feed_of, marks_of
from lodestream.tables.feed import found_by
from lodestream.tables.hidden import parts, shown
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.notes import EVOLVED
from lodestream.tables.places_kept import kept_otherwise
from lodestream.tables.store import MAIN

T = TypeVar("T")


class KeyedHome(Home):
    """`shape` gives the columns of the table and the place of a change, `identity` what tells its rows apart."""

    def __init__(
        self,
        context: Context,
        kept: Contracted,
        shape: Callable[[Terms], StructType],
        identity: Callable[[Terms], Sequence[str]],
    ) -> None:
        self._context = context
        self._kept = kept
        self._shape = shape
        self._identity = identity
        self._feed: IcebergStore | None = None
        self._siblings: Siblings | None = None
        self._follower: Follower | None = None

    @property
    def store(self) -> IcebergStore:
        """The feed: the truth, and where batches are published."""
        return _opened(self._feed)

    def siblings(self) -> Siblings:
        return _opened(self._siblings)

    def follower(self) -> Follower:
        return _opened(self._follower)

    def open(self, *, guest: bool = False) -> IcebergStore:
        lake, name, promise = self._context.lake, self._context.name, self._kept.promise
        if promise is not None:
            promise.check(lake, name)
        feed = self._open(self._kept.terms)
        if promise is not None and not guest:
            promise.record(lake.store(name))
        return feed

    def follow_edits(self, *, opened: bool) -> None:
        edit = self._kept.edited()
        if edit is None:
            return
        lake, name = self._context.lake, self._context.name
        if opened:
            if edit.promise is not None:
                edit.promise.check(lake, name)
            self._evolve(self._kept.terms.contract, edit.contract)
            if edit.promise is not None:
                edit.promise.record(lake.store(name))
            self._open(edit.terms)
        self._kept.agree(edit)

    def leave(self) -> None:
        """A guest goes: what it published is applied, and its branches are dropped."""
        self.follower().catch_up()
        self.follower().leave()

    def refuse_adoption(self) -> LodeError | None:
        return NotOurTable(
            f"{self._context.name} holds rows that no change feed explains",
            why="the rows of a keyed table are its feed applied, and rows from elsewhere are in no feed",
            fix="rename or drop the table; its input fills it again",
        )

    def _open(self, terms: Terms) -> IcebergStore:
        lake, name, shape = self._context.lake, self._context.name, self._shape(terms)
        place = f"`{ORDER}` {shape[PLACE].dataType.simpleString()}"
        parts_now = StructType(_parts(shape))
        own = ddl_of(shape, without=(PLACE,), required=terms.contract.never_null if terms.contract else ())
        found = terms.unique.filters() if terms.unique else {}
        partition_by = tuple(terms.table.partition_by)
        state = self._make(terms, name, f"{own}, {ddl_of(parts_now)}", partition_by, found)
        held = lake.whole(name)
        refused = kept_otherwise(name, [*held.columns, *state.hidden], parts_now.names)
        if refused is not None:
            raise refused
        columns = ddl_of(shown(held).schema)
        feed = lake.open(feed_of(name), f"{columns}, {place}, `{WEIGHT}` INT, `{BATCH}` BIGINT")
        keys = ddl_of(StructType([field for field in shape if field.name in terms.keys]))
        marks = self._make(terms, marks_of(name), f"{keys}, {place}", (), {})
        if terms.contract is not None:
            self._evolve(terms.contract, terms.contract)
            evolve_keys(lake, marks_of(name), terms.contract, terms.keys)
        self._widen(shape)
        feed.refresh()
        siblings = Siblings.of(lake, terms, self._identity(terms))
        follower = Follower(
            lake, self._context.run, lake.store(feed.name), state, marks, siblings.identity, siblings.watch
        )
        self._feed, self._siblings, self._follower = feed, siblings, follower
        return feed

    def _make(
        self, terms: Terms, name: str, ddl: str, partition_by: tuple[str, ...], found: Mapping[str, str]
    ) -> IcebergStore:
        return self._context.lake.open(
            name,
            ddl,
            partition_by=partition_by,
            properties=found_by(terms.keys, partition_by, {**found, **terms.table.properties}),
            comment=terms.comment,
        )

    def _evolve(self, before: Contract | None, wanted: Contract) -> None:
        name = self._context.name
        if follow_contract(self._context, before, wanted, (feed_of(name), name))[name]:
            self._renew()

    def _widen(self, shape: StructType) -> None:
        """Places, and what a history adds, are of the types that `sequence_by` has now."""
        name = self._context.name
        named = {ORDER: shape[PLACE].dataType, **{field.name: field.dataType for field in shape}}
        own = [one for one in named if one in (ORDER, VALID_FROM, VALID_TO)]
        wanted = StructType([StructField(one, named[one]) for one in own])
        widened = [widen(self._context.lake, table, wanted) for table in (feed_of(name), name, marks_of(name))]
        if any([*widened, widen_hidden(self._context.lake, name, StructType(_parts(shape)))]):
            self._renew()

    def _renew(self) -> None:
        # Rows are read as of a snapshot, with its columns: without a newer one these would be the old ones.
        self._context.lake.store(self._context.name).commit_empty(MAIN, EVOLVED)


def _parts(shape: StructType) -> list[StructField]:
    place = shape[PLACE].dataType
    return parts(place) if isinstance(place, StructType) else []


def _opened(part: T | None) -> T:
    if part is None:
        raise RuntimeError("open() first")
    return part
