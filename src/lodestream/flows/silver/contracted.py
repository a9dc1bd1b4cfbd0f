"""A flow under a contract, which a person may edit while it runs: what follows from it, and how the table follows."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

from pyspark.sql import DataFrame

from lodestream.contracts import Contract
from lodestream.contracts.compatibility import changes
from lodestream.contracts.conform import unfilled
from lodestream.contracts.evolution import Step
from lodestream.contracts.thresholds import Tally
from lodestream.errors import ContractError
from lodestream.flows.dead.table import DeadLetters
from lodestream.flows.flow import Published
from lodestream.flows.promise import Promise
from lodestream.flows.silver.declared import DeclaredFlow, Decoder
from lodestream.flows.silver.evolving import evolve_table
from lodestream.flows.silver.judge import Judge
from lodestream.flows.silver.limits import LimitWatch, published_since
from lodestream.flows.silver.unique import Uniqueness
from lodestream.flows.silver.unknown import UnknownFields
from lodestream.pipeline import Table
from lodestream.pipeline.definition import code_of
from lodestream.sources.source import Source
from lodestream.tables.lake import Lake

log = logging.getLogger(__name__)


class Edits(Protocol):
    """The declared contract, which a person may edit while the table runs."""

    def changed(self) -> bool:
        """Whether it may be another one than at the last call."""

    def load(self) -> tuple[Contract | None, Decoder | None, Promise | None]:
        """The contract as it is now and what depends on it. Raises `ContractError`."""


class ContractedFlow(DeclaredFlow):
    _edited = False  # whether an edit of the contract waits to be applied

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
        self.dead = DeadLetters(lake, self.name, run)
        self._edits = edits
        self._told: set[str] = set()
        self.code = code_of(table)  # now: the file may be edited while we run
        self._agree(contract, decode)

    def step(self, rows: int) -> Published | None:
        if self._edits is not None and (self._edits.changed() or self._edited):
            self._edited = True  # until it is applied: an error on the way must not make us forget it
            self._reread(self._edits)
            self._edited = False
        return super().step(rows)

    @property
    def dedups(self) -> bool:
        """Whether the first row of a key stays, and the next ones are duplicates."""
        return bool(self.keys)

    @property
    def steady(self) -> bool:
        """Whether a judged batch stays what it is when the table moves: then a replay need not judge again."""
        return self.unique is None

    @property
    def tables(self) -> Sequence[str]:
        """The tables that have the contract's columns."""
        return (self.name,)

    @cached_property
    def judge(self) -> Judge:
        return Judge(
            self.name, self.contract, self.table.filters, self.table.expectations, self.arrival, self.keys
        )  # fmt: skip

    def transformed(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        rows = super().transformed(frames)
        self._notice_unfilled(rows.columns)
        return rows

    def _notice_unfilled(self, columns: Sequence[str]) -> None:
        """Once for each: a column that nobody returns stays null for ever, and no row is refused for it."""
        missing = unfilled(self.contract, columns) if self.contract else ()
        news = [name for name in missing if name not in self._told]
        if self.contract is not None and news:
            self._told.update(news)
            self.notice("column.unfilled", columns=news, contract=self.contract.title)
            log.warning("column.unfilled table=%s columns=%s", self.name, ",".join(news))

    def _agree(self, contract: Contract | None, decode: Decoder | None) -> None:
        """What the flow does by this contract, from the next batch on."""
        self.contract, self.decode = contract, decode
        self.keys = self.table.keys or (contract.keys if contract else ())
        self.unique = Uniqueness.of(contract, self.keys)
        self.limits = LimitWatch(self.name, contract, self.table.expectations, self._published_since)
        self.unknown = UnknownFields(decode)
        for derived in ("judge", "columns", "directory"):
            self.__dict__.pop(derived, None)

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
        self.promise = promise
        self._agree(contract, decode)

    def _evolve(self, wanted: Contract) -> Mapping[str, Sequence[Step]]:
        before = self.contract if self.contract != wanted else None
        told = [str(change) for change in changes(before, wanted)] if before else []
        steps = {name: evolve_table(self.lake, name, wanted) for name in self.tables}
        if told or any(steps.values()):
            taken = [str(step) for step in steps[self.name]]
            self.notice("schema-change", contract=wanted.title, steps=taken, changes=told)
        return steps

    def _published_since(self, moment: float, reasons: Sequence[str]) -> Mapping[int, Tally]:
        letters = self.lake.whole(self.dead.name) if self.dead.exists() else None
        return published_since(self.writer.store, letters, moment, reasons)
