"""What a new version of the contract changes beside the table's own columns: keys in the marks, places everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyspark.sql.types import StructType

from lodestream.contracts import Contract
from lodestream.contracts.evolution import Step
from lodestream.contracts.types import parse_type
from lodestream.contracts.widening import relation
from lodestream.flows.columns.evolve import evolve_table
from lodestream.tables.evolving import apply_steps, change_hidden, hidden_columns, spelt
from lodestream.tables.lake import Lake


def evolve_keys(lake: Lake, marks: str, contract: Contract, keys: Sequence[str]) -> None:
    """The marks have the key columns alone, and follow them."""
    fields = tuple(field for field in contract.fields if field.name in keys)
    only = replace(contract, fields=fields, keys=tuple(keys), rules=(), event_time=None, lateness=None)
    evolve_table(lake, marks, only)


def widen(lake: Lake, table: str, wanted: StructType) -> bool:
    """Give the columns that are no contract's, the places among them, room for what comes now."""
    held = lake.whole(table).schema
    steps = list(_wider(StructType([field for field in held if field.name in wanted.names]), wanted))
    if steps:
        apply_steps(lake.spark, lake.store(table), steps)
    return bool(steps)


def widen_hidden(lake: Lake, table: str, wanted: StructType) -> bool:
    """The same of columns that readers do not see."""
    store = lake.store(table)
    held = hidden_columns(lake, store)
    steps = list(_wider(held, wanted))
    if steps:
        change_hidden(lake.spark, store, steps)
    return bool(steps)


def _wider(held: StructType, wanted: StructType, path: tuple[str, ...] = ()) -> Iterator[Step]:
    kinds = {field.name: field.dataType for field in wanted}
    for field in held:
        kind = kinds.get(field.name)
        if isinstance(field.dataType, StructType) and isinstance(kind, StructType):
            yield from _wider(field.dataType, kind, (*path, field.name))
        elif kind is not None and relation(parse_type(spelt(field.dataType)), parse_type(spelt(kind))) == "widened":
            yield Step("widen", (*path, field.name), type=spelt(kind))
