"""Silver: decoded, conformed to the contract, deduplicated. Every input row is accounted for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, struct

from lodestream.contracts import Contract, Field
from lodestream.contracts.compatibility import changes
from lodestream.contracts.evolution import Step
from lodestream.contracts.thresholds import Tally
from lodestream.errors import ContractError
from lodestream.flows.accounting import multiplies
from lodestream.flows.courtesy import Courtesy, put_up, take_down
from lodestream.flows.dead import DeadLetters
from lodestream.flows.envelope import EVENT, has_file_marks, records
from lodestream.flows.evolving import evolve_table
from lodestream.flows.filtered import FilteredBatch, TransformedBatch
from lodestream.flows.flow import Batch, Flow, Published, Span
from lodestream.flows.judge import CARRIED, ERROR, Judge
from lodestream.flows.judged import JudgedBatch
from lodestream.flows.keyed.directory import Addresses, KeyDirectory
from lodestream.flows.keyed.facts import Facts
from lodestream.flows.keyed.keeper import DirectoryKeeper
from lodestream.flows.limits import LimitWatch, published_since
from lodestream.flows.promise import Promise
from lodestream.flows.raising import raised_by_row
from lodestream.flows.shape import partition_columns
from lodestream.flows.unique import Uniqueness
from lodestream.flows.unknown import UnknownFields
from lodestream.flows.usercode import transform
from lodestream.pipeline import Table
from lodestream.sources.source import Source
from lodestream.sources.table import AppendedRows
from lodestream.tables.evolving import spelt
from lodestream.tables.feed import found_by
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake
from lodestream.tables.publish import Base, Moved, Writer

Decoder = Callable[[DataFrame], DataFrame]


class Edits(Protocol):
    """The declared contract, which a person may edit while the table runs."""

    def changed(self) -> bool:
        """Whether it may be another one than at the last call."""

    def load(self) -> tuple[Contract | None, Decoder | None, Promise | None]:
        """The contract as it is now and what depends on it. Raises `ContractError`."""


class SilverFlow(Flow):
    def __init__(
        self,
        lake: Lake,
        table: Table,
        run: str,
        sources: Sequence[Source],
        *,
        inputs: Sequence[str],
        lookups: Sequence[str] = (),
        corrected: Sequence[str] = (),
        contract: Contract | None = None,
        decode: Decoder | None = None,
        edits: Edits | None = None,
    ) -> None:
        super().__init__(lake, table, run, sources)
        self.inputs = tuple(inputs)
        self.lookups = frozenset(lookups)
        self.corrected = frozenset(corrected)
        self.contract = contract
        self.decode = decode
        self.dead = DeadLetters(lake, self.name, run)
        self.limits = LimitWatch(self.name, contract, table.expectations, self._published_since)
        self.keys = table.keys or (contract.keys if contract else ())
        self.unique = Uniqueness.of(contract, self.keys)
        self._careful = False
        self._courtesy = Courtesy()
        self._usual = 0.0
        self._edits = edits
        # The keys that the batch under way brings, as the directory notes them; None when they are not known.
        self.came: Sequence[int] | None = None
        self.unknown = UnknownFields(decode)

    def drives(self, source: Source) -> bool:
        return source.name not in self.lookups or source.name in self.corrected

    def create(self) -> IcebergStore:
        wanted = self.contract or self._of_function()
        store = self.lake.open(
            self.name,
            wanted.ddl(),
            partition_by=self.table.partition_by,
            properties={**self._filters(wanted), **self.table.properties},
            comment=self.table.description or (self.contract.description if self.contract else None),
        )
        self._evolve(wanted)
        store.refresh()
        return store

    @property
    def dedups(self) -> bool:
        """Whether the first row of a key stays, and the next ones are duplicates."""
        return bool(self.keys)

    def _filters(self, wanted: Contract) -> dict[str, str]:
        """What the table holds of a few values is found by them where no partition bounds the search."""
        found = self.unique.filters() if self.unique else {}
        if self.dedups and not partition_columns(self.table.partition_by, [field.name for field in wanted]):
            return found_by(self.keys, self.table.partition_by, found)
        return found

    @property
    def steady(self) -> bool:
        """Whether a judged batch stays what it is when the table moves: then a replay need not judge again."""
        return self.unique is None

    @property
    def tables(self) -> Sequence[str]:
        """The tables that have the contract's columns."""
        return (self.name,)

    def step(self, rows: int) -> Published | None:
        if self._edits is not None and self._edits.changed():
            self._reread(self._edits)
        return super().step(rows)

    def visit(self) -> None:
        """Open the table beside the run that keeps it: instead of `prepare`, for a batch that moves no positions."""
        if self.promise is not None:
            self.promise.check(self.lake, self.name)
        self._writer = Writer(self.create(), self.run, alone=False)
        self._careful = True
        self.dead = DeadLetters(self.lake, self.name, self.run, guest=True)

    def ask(self) -> None:
        """Before an attempt of a guest: the run that keeps the table is asked to wait."""
        put_up(self.writer.store, self.run)

    def thank(self) -> None:
        """After the attempts: nobody has to wait any more."""
        take_down(self.writer.store, self.run)

    def leave(self) -> None:
        """After `visit`: nothing of the guest stays behind."""
        self.writer.store.drop(self.writer.branch)
        self.dead.leave()

    def make(self, span: Span) -> Batch:
        frames = {source.name: source.read(span.since[source.name], span.to[source.name]) for source in self.sources}
        if self.judges:
            self.dead.settle(self.writer.store)
        return self.batch(frames, span)

    def judged(self, frames: Mapping[str, DataFrame], span: Span) -> JudgedBatch:
        """The given inputs turned into rows and held against the contract; a replay gives the rows of dead letters."""
        return JudgedBatch(self, frames, span)

    def batch(self, frames: Mapping[str, DataFrame], span: Span) -> Batch:
        if self.judges:
            return self.judged(frames, span)
        # Marks of files are no records, and only a judged batch counts them.
        least = span.rows if self.accounts and not has_file_marks(frames[self.driving]) else 0
        frames = {name: records(frame) for name, frame in frames.items()}
        if self.table.filters:
            return FilteredBatch(self.lake, self.name, self.transformed(frames), self.table.filters, span.rows, least)
        return TransformedBatch(self.lake, self.name, self.transformed(frames), span.rows, least)

    def _run_batch(self, base: Base, span: Span, began: float, *, decision: str | None = None) -> Published:
        """A batch that is written in one pass is judged row by row after all when its code raises on a row."""
        if self._courtesy.let_pass(self.writer.store, self._usual):
            raise Moved(self.name)
        try:
            self.came = () if span.rows == 0 else None
            published = super()._run_batch(base, span, began, decision=decision)
            self._usual = published.seconds["total"]
            self._note_keys(base, published)
            return published
        except Exception as error:
            if self.judges or raised_by_row(error) is None or self.explain(error) is not None:
                raise
        self._careful = True
        try:
            return super()._run_batch(base, span, began, decision=decision)
        finally:
            self._careful = False

    @cached_property
    def directory(self) -> DirectoryKeeper:
        """Knows which keys the table surely has not."""
        schema = self.lake.whole(self.name).schema
        return DirectoryKeeper(self.lake, self.name, Addresses.over(self.keys, self.table.partition_by, schema))

    def known_keys(self) -> KeyDirectory | None:
        """The directory of what a batch is built on; None when there is none."""
        head = self.writer.store.head()
        return self.directory.at(head, self.writer.store.ancestors(head)) if head is not None else None

    def _note_keys(self, base: Base, published: Published) -> None:
        after = self.writer.store.snapshot(published.snapshot)
        if self.dedups and self.came is not None and after is not None:
            self.directory.follow(Facts(came=len(self.came), state=base.head, entries=tuple(self.came)), after)

    @property
    def judges(self) -> bool:
        """Whether rows may turn out to be dead letters or duplicates."""
        return self._careful or bool(self.contract or self.decode or self.keys or self.table.expectations)

    @property
    def accounts(self) -> bool:
        """Whether each row of the input must come out again: not where two inputs meet, or where changes are netted."""
        followed = [one for one in self.sources if one.name not in self.lookups]
        return self.decode is not None or (len(followed) == 1 and isinstance(followed[0], AppendedRows))

    @cached_property
    def multiplies(self) -> bool:
        """Whether the declared code may make several rows of one."""
        shapes = {name: self.lake.whole(name).limit(0) for name in self.inputs}
        shapes[self.driving] = self.carried(shapes[self.driving])
        bare = {name: self.lake.spark.createDataFrame([], frame.schema) for name, frame in shapes.items()}
        return multiplies(self.transformed(bare))

    @property
    def driving(self) -> str:
        return next(name for name in self.inputs if name not in self.lookups)

    @cached_property
    def judge(self) -> Judge:
        return Judge(
            self.name, self.contract, self.table.filters, self.table.expectations, self.arrival, self.keys
        )  # fmt: skip

    @cached_property
    def arrival(self) -> str | None:
        """When an event reached the broker; for files, when the file was written."""
        if self.decode is None:
            return None
        return f"{CARRIED}.timestamp" if "timestamp" in self.lake.whole(self.driving).columns else f"{CARRIED}.modified"

    def transformed(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        ordered = {name: frames[name] for name in self.inputs}
        return transform(self.lake.spark, self.table, ordered, (self.driving, CARRIED) if self.judges else None)

    def _published_since(self, moment: float, reasons: Sequence[str]) -> Mapping[int, Tally]:
        letters = self.lake.whole(self.dead.name) if self.dead.exists() else None
        return published_since(self.writer.store, letters, moment, reasons)

    def _reread(self, edits: Edits) -> None:
        """The contract was edited while we run. One that cannot be read changes nothing until it can."""
        try:
            contract, decode, promise = edits.load()
        except ContractError as error:
            self.notice("contract.unreadable", what=error.what, why=error.why)
            return
        if contract is None or contract == self.contract:
            return
        if self._writer is not None:
            if promise is not None:
                promise.check(self.lake, self.name)
            self._evolve(contract)
            if promise is not None:
                promise.record(self.lake.store(self.name))
        self.contract, self.decode, self.promise = contract, decode, promise
        self.keys = self.table.keys or contract.keys
        self.unique = Uniqueness.of(contract, self.keys)
        self.limits = LimitWatch(self.name, contract, self.table.expectations, self._published_since)
        self.unknown = UnknownFields(decode)
        for derived in ("judge", "columns", "directory"):
            self.__dict__.pop(derived, None)

    def _evolve(self, wanted: Contract) -> Mapping[str, Sequence[Step]]:
        before = self.contract if self.contract != wanted else None
        told = [str(change) for change in changes(before, wanted)] if before else []
        steps = {name: evolve_table(self.lake, name, wanted) for name in self.tables}
        if told or any(steps.values()):
            taken = [str(step) for step in steps[self.name]]
            self.notice("schema-change", contract=wanted.title, steps=taken, changes=told)
        return steps

    def _of_function(self) -> Contract:
        """Without a contract, the columns are those that the function gives."""
        fields = [one for one in self._shape().schema if one.name != CARRIED]
        return Contract(self.table.short, "0", tuple(Field(one.name, spelt(one.dataType)) for one in fields))

    def _shape(self) -> DataFrame:
        """The declared rows over empty inputs: only their columns count."""
        frames = {name: self.lake.whole(name).limit(0) for name in self.inputs}
        frames[self.driving] = self.carried(frames[self.driving])
        return self.transformed(frames)

    def carried(self, rows: DataFrame) -> DataFrame:
        """The driving input as the function sees it: decoded if declared, the raw row beside it in `_lode`."""
        if self.decode is not None:
            return self.decode(rows).drop(ERROR)
        if self.judges:
            return rows.withColumn(CARRIED, struct(*[col(f"`{name}`") for name in rows.columns])).drop(EVENT)
        return rows
