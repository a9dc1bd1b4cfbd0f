"""The dead letters of a batch, committed before its rows: no row can vanish between the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from lodestream.flows.letters.table import DeadLetters
from lodestream.tables.snapshot import Stamp
from lodestream.tables.store import TableStore


@dataclass(frozen=True, slots=True)
class Lettered:
    """The dead-letter table beside the one that decides which attempt counts, `main`."""

    dead: DeadLetters
    main: TableStore
    contract: str | None

    def settle(self) -> None:
        self.dead.settle(self.main)

    def publish(self, letters: Callable[[], DataFrame], number: int, stamp: Stamp, place: str) -> None:
        if number:
            self.dead.publish(letters(), stamp, place, self.contract)

    def notes(self) -> Mapping[str, str]:
        return self.dead.attestation()

    def tidy(self, *, lost: bool) -> None:
        self.dead.tidy(self.main, lost=lost)
