"""A table's contract from one run to the next: held against the one before, then recorded in the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lodestream.contracts import Contract
from lodestream.errors import ContractError
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake
from lodestream.tables.promised import record, recorded


@dataclass(frozen=True, slots=True)
class Promise:
    """`refuse` says why the table's readers do not let the old contract become the new one, or None."""

    contract: Contract
    refuse: Callable[[Contract], ContractError | None]

    def check(self, lake: Lake, table: str) -> None:
        """Before the table is opened, so that a refused contract has changed nothing of it."""
        if not lake.exists(table):
            return
        before = recorded(lake.store(table))
        refused = self.refuse(before) if before is not None else None
        if refused is not None:
            raise refused

    def record(self, store: IcebergStore) -> None:
        record(store, self.contract)
