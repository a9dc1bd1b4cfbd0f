"""What the parts of one flow share."""

from __future__ import annotations

from dataclasses import dataclass

from lodestream.flows.notices import Notices
from lodestream.flows.tuning import Tuning
from lodestream.pipeline import Table
from lodestream.tables.lake import Lake


@dataclass(frozen=True, slots=True)
class Context:
    """The lake's session belongs to this flow alone: its settings follow the size of each batch."""

    lake: Lake
    table: Table
    run: str
    notices: Notices
    tuning: Tuning

    @classmethod
    def of(cls, lake: Lake, table: Table, run: str) -> Context:
        return cls(lake, table, run, Notices(), Tuning(lake.spark))

    @property
    def name(self) -> str:
        return self.table.name
