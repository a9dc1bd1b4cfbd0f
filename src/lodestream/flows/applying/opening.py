"""A keyed table and its siblings are made, and brought to their contract: before the first batch, and after an edit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.types import StructField, StructType

from lodestream.contracts import Contract
from lodestream.flows.applying.follower import Follower
from lodestream.flows.columns.shape import ddl_of
from lodestream.flows.columns.widen import evolve_keys, widen, widen_hidden
from lodestream.flows.context import Context
from lodestream.flows.judging.terms import Terms
from lodestream.flows.writing.home import follow_contract
from lodestream.flows.writing.siblings import Siblings
from lodestream.names import BATCH, ORDER, ORDER_KEY, VALID_FROM, VALID_TO, WEIGHT, feed_of, marks_of
from lodestream.tables.feed import found_by
from lodestream.tables.hidden import parts, shown
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.notes import EVOLVED
from lodestream.tables.order_keys_kept import kept_otherwise
from lodestream.tables.store import MAIN


@dataclass(frozen=True, slots=True)
class Opened:
    """The feed is the truth, and where batches are published."""

    feed: IcebergStore
    siblings: Siblings
    follower: Follower


class KeyedOpening:
    """`shape` gives the columns of the table and the order key of a change, `identity` what tells its rows apart."""

    def __init__(
        self, context: Context, shape: Callable[[Terms], StructType], identity: Callable[[Terms], Sequence[str]]
    ) -> None:
        self._context = context
        self._shape = shape
        self._identity = identity

    def open(self, terms: Terms) -> Opened:
        lake, name, shape = self._context.lake, self._context.name, self._shape(terms)
        order_key = f"`{ORDER}` {shape[ORDER_KEY].dataType.simpleString()}"
        parts_now = StructType(_parts(shape))
        own = ddl_of(shape, without=(ORDER_KEY,), required=terms.contract.never_null if terms.contract else ())
        found = terms.unique.filters() if terms.unique else {}
        partition_by = tuple(terms.table.partition_by)
        state = self._made(terms, name, f"{own}, {ddl_of(parts_now)}", partition_by, found)
        held = lake.whole(name)
        refused = kept_otherwise(name, [*held.columns, *state.hidden], parts_now.names)
        if refused is not None:
            raise refused
        columns = ddl_of(shown(held).schema)
        feed = lake.open(feed_of(name), f"{columns}, {order_key}, `{WEIGHT}` INT, `{BATCH}` BIGINT")
        keys = ddl_of(StructType([field for field in shape if field.name in terms.keys]))
        marks = self._made(terms, marks_of(name), f"{keys}, {order_key}", (), {})
        if terms.contract is not None:
            self.evolve(terms.contract, terms.contract)
            evolve_keys(lake, marks_of(name), terms.contract, terms.keys)
        self._widen(shape)
        feed.refresh()
        siblings = Siblings.of(lake, terms, self._identity(terms))
        follower = Follower(
            lake, self._context.run, lake.store(feed.name), state, marks, siblings.identity, siblings.watch
        )
        return Opened(feed, siblings, follower)

    def _made(
        self, terms: Terms, name: str, ddl: str, partition_by: tuple[str, ...], found: Mapping[str, str]
    ) -> IcebergStore:
        return self._context.lake.open(
            name,
            ddl,
            partition_by=partition_by,
            properties=found_by(terms.keys, partition_by, {**found, **terms.table.properties}),
            comment=terms.comment,
        )

    def evolve(self, before: Contract | None, wanted: Contract) -> None:
        name = self._context.name
        if follow_contract(self._context, before, wanted, (feed_of(name), name))[name]:
            self._renew()

    def _widen(self, shape: StructType) -> None:
        """Order keys, and what a history adds, get the types that `sequence_by` has now."""
        name = self._context.name
        named = {ORDER: shape[ORDER_KEY].dataType, **{field.name: field.dataType for field in shape}}
        own = [one for one in named if one in (ORDER, VALID_FROM, VALID_TO)]
        wanted = StructType([StructField(one, named[one]) for one in own])
        widened = [widen(self._context.lake, table, wanted) for table in (feed_of(name), name, marks_of(name))]
        if any([*widened, widen_hidden(self._context.lake, name, StructType(_parts(shape)))]):
            self._renew()

    def _renew(self) -> None:
        # Rows are read as of a snapshot, with its columns: without a newer one these would be the old ones.
        self._context.lake.store(self._context.name).commit_empty(MAIN, EVOLVED)


def _parts(shape: StructType) -> list[StructField]:
    order_key = shape[ORDER_KEY].dataType
    return parts(order_key) if isinstance(order_key, StructType) else []
