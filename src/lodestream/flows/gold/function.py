"""A Gold function with declared keys: the rows of a key are made of the input rows with that key."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.functions import col

from lodestream.errors import DeclarationError
from lodestream.flows.batch import Batch, Span
from lodestream.flows.code.declared import transform
from lodestream.flows.gold.batches import UnchangedBatch
from lodestream.flows.gold.keys import replaced
from lodestream.flows.gold.views import Inputs, Keys
from lodestream.pipeline import Table
from lodestream.pipeline.gold.pieces import quoted

if TYPE_CHECKING:
    from lodestream.flows.gold.table import GoldTable


def declared_keys(table: Table, shapes: Mapping[str, DataFrame], lookups: Collection[str]) -> tuple[str, ...]:
    """The declared keys when every followed input carries them; none means that all rows are made anew."""
    if table.strategy == "delta":
        raise _refused(table, "a function does not show how a change adds up")
    if not table.keys or table.strategy == "full":
        return ()
    without = [
        name for name, rows in shapes.items() if name not in lookups and not set(table.keys) <= set(rows.columns)
    ]
    if without and table.strategy == "affected":
        raise _refused(table, f"{', '.join(without)} does not carry {', '.join(table.keys)}")
    return () if without else table.keys


def recompute_declared(gold: GoldTable, inputs: Inputs, span: Span) -> Batch:
    names = list(gold.keys)
    changed = [inputs.changes(name).select(*map(quoted, names)) for name in inputs.changed]
    keys = Keys(reduce(DataFrame.unionAll, changed).distinct())
    if keys.none:
        return UnchangedBatch(gold, span.rows)
    frames = {one.table.name: _narrowed(inputs, one.table.name, one.lookup, keys, names) for one in gold.inputs}
    made = transform(gold.lake.spark, gold.table, frames)
    rows = _with_keys(made, keys, names)
    return replaced(gold, [(name, quoted(name)) for name in names], keys, rows, span)


def _narrowed(inputs: Inputs, name: str, lookup: bool, keys: Keys, names: list[str]) -> DataFrame:
    if lookup:
        return inputs.now(name)
    rows = inputs.now(name)
    only = keys.condition([(column, column) for column in names])
    return _with_keys(rows if only is None else rows.where(only), keys, names)


def _with_keys(rows: DataFrame, keys: Keys, names: list[str]) -> DataFrame:
    touched = keys.rows.select(*[col(quoted(name)).alias(f"_lode_k{n}") for n, name in enumerate(names)])
    same = [rows[quoted(name)].eqNullSafe(touched[f"_lode_k{n}"]) for n, name in enumerate(names)]
    return rows.join(touched, same, "left_semi")


def _refused(table: Table, why: str) -> DeclarationError:
    return DeclarationError(
        f"{table.name}: strategy {table.strategy!r} was asked for, but it cannot be proven to equal a recompute",
        why=why,
        fix='give keys= that every followed input carries, or strategy="full"',
    )
