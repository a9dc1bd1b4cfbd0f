"""What the analysis knows about a Gold table's inputs, and what it hands to the executor.

The SQL pieces read temporary views, never tables, so that the executor decides which snapshot each input is read at:

=================  ==========================================================================================
`now_view(x)`      input x as it is after this batch
`feed_view(x)`     the changes of input x in this batch: its columns and `_weight` (+1 or -1)
`_lode_gold`       the Gold table as stored, or its sibling `<table>__state` when `state_home` is "table"
`_lode_stored`     the state columns of the stored groups (`unpack_sql`)
`_lode_delta`      the result of `delta_sql`
`_lode_both`       stored and new side by side (`both_sql`), in as few partitions as the executor likes
`_lode_folded`     the result of `fold_sql`
`_lode_keys`       the keys to recompute: the union of the `affected_sql` of every changed input
=================  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Strategy = Literal["delta", "affected", "full"]
OnChange = Literal["affected", "full"]

GOLD = "_lode_gold"
STORED = "_lode_stored"
DELTA = "_lode_delta"
BOTH = "_lode_both"
FOLDED = "_lode_folded"
KEYS = "_lode_keys"
# In the message of a query that met a group with fewer rows than none.
NEGATIVE = "lode: more rows were taken away than there are"


def now_view(name: str) -> str:
    return "_lode_now_" + name.lower().replace(".", "_")


def feed_view(name: str) -> str:
    return "_lode_feed_" + name.lower().replace(".", "_")


@dataclass(frozen=True, slots=True)
class InputInfo:
    """One table that a Gold query reads. Columns map a name to its Spark type, or to None when unknown."""

    name: str
    columns: Mapping[str, str | None] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    lookup: bool = False


@dataclass(frozen=True, slots=True)
class StateColumn:
    """One hidden value per group; `type` is a Spark type, or None when only Spark can tell."""

    name: str
    type: str | None
    meaning: str


@dataclass(frozen=True, slots=True)
class GoldPlan:
    """How one Gold table follows its inputs.

    `keys` are the output columns by which stored rows are replaced; an empty tuple means the whole table.
    `full_sql` gives the rows to store from scratch: first build, full refresh, repair.
    """

    strategy: Strategy
    reason: str
    cheaper: str | None
    inputs: tuple[str, ...]
    columns: tuple[str, ...]
    full_sql: str
    keys: tuple[str, ...] = ()
    shape: Literal["groups", "rows", "table"] = "table"
    # delta
    stream: str | None = None
    state_home: Literal["none", "column", "table"] = "none"
    state_columns: tuple[StateColumn, ...] = ()
    delta_sql: str | None = None
    both_sql: str | None = None
    fold_sql: str | None = None
    present_sql: str | None = None
    store_sql: str | None = None
    unpack_sql: str | None = None
    # what tells stored rows apart: (column of `_lode_delta`, SQL over a stored row); empty for the one global group
    stored_keys: tuple[tuple[str, str], ...] = ()
    # affected keys, and delta when a lookup changes: `affected_keys` are the columns of `_lode_keys`
    affected_keys: tuple[str, ...] = ()
    affected_sql: Mapping[str, str] = field(default_factory=dict)
    recompute_sql: str | None = None
    prune: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    on_lookup_change: Mapping[str, OnChange] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def state_ddl(self) -> str | None:
        """The type of the hidden column `_lode_state`, or None when nothing is hidden or a type is unknown."""
        if not self.state_columns or any(column.type is None for column in self.state_columns):
            return None
        fields = ", ".join(f"{column.name}: {column.type}" for column in self.state_columns)
        return f"STRUCT<{fields}>"


class NotProvableError(Exception):
    """A strategy does not fit: why, and what would make it fit. Never leaves this package."""

    def __init__(self, reason: str, cheaper: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.cheaper = cheaper
