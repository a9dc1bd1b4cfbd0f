"""Silver: decoded, conformed to the contract, deduplicated. Every input row is accounted for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from pyspark.sql import DataFrame

from lodestream.contracts import Contract
from lodestream.errors import DeclarationError
from lodestream.flows.dead.envelope import has_file_marks, records
from lodestream.flows.dead.table import DeadLetters
from lodestream.flows.flow import Batch, Published, Span
from lodestream.flows.keyed.directory import Addresses, KeyDirectory
from lodestream.flows.keyed.facts import Facts
from lodestream.flows.keyed.keeper import DirectoryKeeper
from lodestream.flows.shape import partition_columns
from lodestream.flows.silver.contracted import ContractedFlow
from lodestream.flows.silver.courtesy import Courtesy, put_up, take_down
from lodestream.flows.silver.filtered import FilteredBatch, TransformedBatch
from lodestream.flows.silver.judged import JudgedBatch
from lodestream.flows.silver.raising import raised_by_row
from lodestream.pipeline import Partition, parse_partition
from lodestream.pipeline.partitioning import unbounded
from lodestream.tables.feed import found_by
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.publish import Base, Moved, Writer
from lodestream.tables.snapshot import CODE, Stamp


class SilverFlow(ContractedFlow):
    _usual = 0.0  # seconds that a batch takes
    came: Sequence[int] | None = None
    """The keys that the batch under way brings, as the directory notes them; None when they are not known."""

    @cached_property
    def _courtesy(self) -> Courtesy:
        return Courtesy()

    def create(self) -> IcebergStore:
        wanted = self.contract or self._of_function()
        self._check_bound(wanted)
        store = self.lake.open(
            self.name,
            wanted.ddl(constraints=True),
            partition_by=self.table.partition_by,
            properties={**self._filters(), **self.table.properties},
            comment=self.table.description or (self.contract.description if self.contract else None),
        )
        self._evolve(wanted)
        store.refresh()
        return store

    def _check_bound(self, wanted: Contract) -> None:
        why = unbounded(self.table.dedupe_within, {field.name: field.type for field in wanted})
        if why is not None:
            raise DeclarationError(
                f"{self.name} cannot look for duplicates within {', '.join(self.table.dedupe_within)}",
                why=why,
                fix="name a column that the function returns",
            )

    def _filters(self) -> dict[str, str]:
        """What the table holds of a few values is found by them where no partition bounds the search."""
        found = self.unique.filters() if self.unique else {}
        return found_by(self.keys, self.table.partition_by, found) if self.dedups and not self.near else found

    @property
    def bound(self) -> tuple[Partition, ...]:
        """The periods within which keys and unique values are compared; none: in the whole table."""
        return tuple(map(parse_partition, self.table.dedupe_within))

    @property
    def near(self) -> tuple[Partition, ...]:
        """Rows with the same key lie in the same partition of these."""
        of_key = [one for one in partition_columns(self.table.partition_by, self.keys) if one not in self.bound]
        return (*self.bound, *of_key)

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
        counted = self.accounts and not has_file_marks(frames[self.driving]) and not self.table.allow_no_rows
        least = span.rows if counted else 0
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
        noted = (*self.table.dedupe_within, *self.table.partition_by)
        addresses = Addresses.over(self.keys, noted, self.lake.whole(self.name).schema)
        # Where the first row of a key stays, most batches then read nothing of the table, however small it is.
        return DirectoryKeeper(self.lake, self.name, addresses, fewest=0 if self.dedups else None)

    def known_keys(self) -> KeyDirectory | None:
        """The directory of what a batch is built on; None when there is none."""
        head = self.writer.store.head()
        return self.directory.at(head, self.writer.store.ancestors(head)) if head is not None else None

    def _stamp(self, base: Base, span: Span, batch: Batch, decision: str | None) -> Stamp:
        """Rows stay as the code of their time made them: the batch says which code that was."""
        stamp = super()._stamp(base, span, batch, decision)
        return replace(stamp, notes={**stamp.notes, CODE: self.code})

    def _note_keys(self, base: Base, published: Published) -> None:
        after = self.writer.store.snapshot(published.snapshot)
        if self.dedups and self.came is not None and after is not None:
            self.directory.follow(Facts(came=len(self.came), state=base.head, entries=tuple(self.came)), after)
