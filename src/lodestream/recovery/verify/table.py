"""Verify one Gold table: read what its head says it contains, compute that again, compare. Nothing is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, rand

from lodestream.contracts import quoting
from lodestream.errors import LodeError, NotOurTable
from lodestream.flows.code.declared import transform
from lodestream.flows.context import Tuning
from lodestream.flows.gold.table import GoldTable
from lodestream.names import STATE_COLUMN
from lodestream.pipeline.gold.choose import choose
from lodestream.pipeline.gold.plan import InputInfo, now_view
from lodestream.recovery.verify.comparable import unrepeatable
from lodestream.recovery.verify.compare import Comparison, Sampling
from lodestream.recovery.verify.result import (
    DIFFERENT,
    EQUAL,
    NOT_COMPARABLE,
    UNVERIFIABLE,
    Differences,
    Status,
    Verification,
)
from lodestream.sources.source import Position
from lodestream.sources.table import TableInput
from lodestream.tables.hidden import shown
from lodestream.tables.notes import DEFINITION
from lodestream.tables.snapshot import Snapshot, Stamp
from lodestream.tables.store import last_stamp
from lodestream.tables.stored import as_stored

# How often a query that differs is computed again over shuffled inputs, to see whether it has one answer at all. A tie
# of two rows comes out the same way half the time: beside columns with two answers the others are looked at longer.
_DRAWS = 2
_MOST_DRAWS = 8
_PARTITIONS = 3


class _Ended(Exception):
    """The answer is known before anything was compared."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


@dataclass(frozen=True, slots=True)
class _Head:
    """What is verified: the rows of one snapshot, and the input that it says it was made from."""

    snapshot: Snapshot
    stamp: Stamp


def verify_table(
    gold: GoldTable,
    *,
    sampling: Sampling | None = None,
    hide: Collection[str] = (),
    proceed: Callable[[], None] = lambda: None,
) -> Verification:
    """Compare the table's head with its query. `gold` need not be open; its session is used, so its flow must not run.

    `hide` names columns whose values are not to be shown. `proceed` is called between two steps, and may raise.
    """
    return _Verify(gold, sampling, hide, proceed).run()


class _Verify:
    def __init__(
        self, gold: GoldTable, sampling: Sampling | None, hide: Collection[str], proceed: Callable[[], None]
    ) -> None:
        self.gold, self.sampling, self.hide, self.proceed = gold, sampling, hide, proceed
        self.lake, self.spark = gold.lake, gold.lake.spark
        self.sampled: int | None = None

    def run(self) -> Verification:
        began = time.perf_counter()
        head: _Head | None = None
        rows, state, reason = Differences(), Differences(), None
        try:
            head = self._head()
            inputs = self._inputs(head.stamp)
            rows = self._compare_rows(head, inputs)
            if not rows.any:
                state = self._compare_state(head, inputs)
            status: Status = DIFFERENT if rows.any or state.any else EQUAL
        except _Ended as ended:
            status, reason = ended.status, ended.reason
        return Verification(
            self.gold.name,
            status,
            reason,
            head.snapshot.id if head else None,
            rows,
            state,
            self.sampled,
            self.sampling.seed if self.sampling and self.sampled is not None else None,
            round((time.perf_counter() - began) * 1000, 1),
        )

    def _head(self) -> _Head:
        name = self.gold.name
        if not self.lake.exists(name):
            raise _Ended(UNVERIFIABLE, "it has not been made yet")
        store = self.lake.store(name)
        try:
            stamp = last_stamp(store)
        except NotOurTable as foreign:
            raise _Ended(UNVERIFIABLE, foreign.what) from foreign
        snapshot = store.head()
        if stamp is None or snapshot is None:
            raise _Ended(UNVERIFIABLE, "no batch has been published yet")
        return _Head(snapshot, stamp)

    def _inputs(self, stamp: Stamp) -> dict[str, DataFrame]:
        """Each input as it was when the head was made."""
        gold, frames, positions = self.gold, {}, {}
        for table in gold.tables:
            latest = table.latest()
            if latest is None:
                raise _Ended(UNVERIFIABLE, f"its input {table.name} is gone")
            frames[table.name] = _as_of(table, stamp.positions.get(table.name), latest)
            held = stamp.positions[table.name]
            positions[table.name] = latest if held["snapshot"] is None else held
        Tuning(self.spark).fit(sum(table.rows_at(positions[table.name]) for table in gold.tables))
        gold.decide(positions)
        if stamp.notes.get(DEFINITION) != gold.definition:
            what = "its rows come from another query or way of keeping it"
            raise _Ended(UNVERIFIABLE, f"{what}; the next run rebuilds it")
        return frames

    def _compare_rows(self, head: _Head, inputs: Mapping[str, DataFrame]) -> Differences:
        stored = shown(self.lake.whole(self.gold.name, head.snapshot.id))
        fresh = self._recomputed(inputs)
        reason = unrepeatable(fresh, self.gold.table.sql)
        if reason is not None:
            raise _Ended(NOT_COMPARABLE, reason)
        fresh = _like(fresh, stored, "its columns")
        keys = self._keys(stored)
        comparison = self._comparison(stored, fresh, keys)
        self.sampled = comparison.sampled
        self.proceed()
        found = comparison.differences()
        if not found.any:
            return found
        self.proceed()
        undecided = self._undecided(inputs, fresh, stored, keys, found)
        if not undecided:
            return found
        rest = self._comparison(stored.drop(*undecided), fresh.drop(*undecided), keys).differences()
        if not rest.any:
            raise _two_answers(found)
        return rest

    def _undecided(
        self,
        inputs: Mapping[str, DataFrame],
        fresh: DataFrame,
        stored: DataFrame,
        keys: Sequence[str],
        found: Differences,
    ) -> set[str]:
        """The columns that come out differently when the same rows come in another order: they forgive no other one.

        Ends when they are all that differs, or when the very rows are others: then a difference means nothing.
        """
        columns: set[str] = set()
        for draw in range(_MOST_DRAWS):
            mixed = {name: _shuffled(rows) for name, rows in inputs.items()}
            again = _like(self._recomputed(mixed), stored, "its columns")
            seen = self._comparison(again, fresh, keys).differences()
            columns |= set(seen.columns) - set(keys)
            if seen.other_rows or (columns and not found.other_rows and columns >= set(found.columns)):
                raise _two_answers(seen)
            if not columns and draw + 1 >= _DRAWS:
                break
            self.proceed()
        return columns

    def _compare_state(self, head: _Head, inputs: Mapping[str, DataFrame]) -> Differences:
        """What is kept beside the rows to follow changes: wrong state makes wrong rows later."""
        plan = self.gold.plan
        if plan is None or plan.state_home == "none":
            return Differences()
        if plan.state_home == "table":
            known = self.gold.state.of(head.stamp)
            if known is None:
                return Differences()  # the next batch makes it anew from the inputs
            stored, keys = self.gold.state.rows(known), [key for key, _ in plan.stored_keys]
        else:
            stored, keys = self.lake.whole(self.gold.name, head.snapshot.id), self._keys(None)
            if STATE_COLUMN not in stored.columns:
                return Differences()  # another tool has left it out; the next batch makes it anew
        self.proceed()
        _show(inputs)
        fresh = _like(self.spark.sql(plan.full_sql), stored, "the columns of its state")
        hide = stored.columns if self.hide else ()
        return self._comparison(stored, fresh, keys, hide).differences()

    def _recomputed(self, inputs: Mapping[str, DataFrame]) -> DataFrame:
        """The user's own text or function; nothing that was derived from it, since that is what is being checked."""
        table = self.gold.table
        if table.sql is None:
            return transform(self.spark, table, {one.table.name: inputs[one.table.name] for one in self.gold.inputs})
        _show(inputs)
        known = [
            InputInfo(name, {one.name: one.dataType.simpleString() for one in rows.schema})
            for name, rows in inputs.items()
        ]
        return self.spark.sql(choose(table.sql, known, "full").full_sql)

    def _keys(self, stored: DataFrame | None) -> list[str]:
        gold = self.gold
        declared = gold.table.keys or (gold.contract.keys if gold.contract else ())
        keys = (gold.plan.keys if gold.plan else ()) or declared
        return list(keys) if stored is None or set(keys) <= set(stored.columns) else []

    def _comparison(
        self, stored: DataFrame, fresh: DataFrame, keys: Sequence[str], hide: Collection[str] | None = None
    ) -> Comparison:
        made = Comparison(stored, fresh, keys, self.hide if hide is None else hide)
        if self.sampling is not None:
            made.narrow(self.sampling)
        return made


def _two_answers(seen: Differences) -> _Ended:
    differ = seen.added + seen.missing + seen.changed
    return _Ended(
        NOT_COMPARABLE,
        f"computed twice from the same rows it gives two answers ({differ:,} rows differ): "
        "it depends on the order of rows, on chance or on the clock",
    )


def _shuffled(rows: DataFrame) -> DataFrame:
    return rows.repartition(_PARTITIONS, rand()).sortWithinPartitions(rand())


def _show(inputs: Mapping[str, DataFrame]) -> None:
    for name, rows in inputs.items():
        rows.createOrReplaceTempView(now_view(name))


def _as_of(table: TableInput, position: Position | None, latest: Position) -> DataFrame:
    if position is None:
        raise _Ended(UNVERIFIABLE, f"its head does not say which snapshot of {table.name} it contains")
    if position["uuid"] != latest["uuid"]:
        raise _Ended(UNVERIFIABLE, f"its input {table.name} was dropped and created again since")
    if position["snapshot"] is None:
        return table.now(latest).limit(0)
    try:
        return table.now(position)
    except LodeError as error:
        raise _Ended(UNVERIFIABLE, f"{error.what}: {error.why}") from error
    except Exception as error:
        if "snapshot" not in str(error).lower():
            raise
        reason = f"snapshot {position['snapshot']} of its input {table.name} has expired"
        raise _Ended(UNVERIFIABLE, reason) from error


def _like(fresh: DataFrame, stored: DataFrame, what: str) -> DataFrame:
    """The computed rows with the stored columns, in their order and as Iceberg stores their types."""
    given = {one.name.lower(): one for one in fresh.schema}
    held = {one.name.lower(): one for one in stored.schema}
    wrong = [f"{held[name].name} is stored, and not computed" for name in held if name not in given]
    wrong += [f"{given[name].name} is computed, and not stored" for name in given if name not in held]
    for name in held.keys() & given.keys():
        kept, made = held[name].dataType, given[name].dataType
        if as_stored(kept) != as_stored(made):
            wrong.append(f"{held[name].name} is {kept.simpleString()}, and computed as {made.simpleString()}")
    if wrong:
        raise _Ended(DIFFERENT, f"{what} are others: {'; '.join(sorted(wrong))}")
    return fresh.select(*[col(quoting.name(given[name].name)).cast(one.dataType) for name, one in held.items()])
