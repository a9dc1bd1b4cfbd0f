"""A Silver table under its contract: made, and brought to what the contract says now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lodestream.contracts import Contract
from lodestream.contracts.compatibility import changes
from lodestream.contracts.evolution import Step
from lodestream.errors import DeclarationError
from lodestream.flows.columns.evolve import evolve_table
from lodestream.flows.context import Context
from lodestream.flows.judging.terms import Contracted, Terms
from lodestream.flows.parts import Home
from lodestream.observe import SchemaChange
from lodestream.pipeline.partitioning import unbounded
from lodestream.tables.feed import found_by
from lodestream.tables.iceberg import IcebergStore


class SilverHome(Home):
    def __init__(self, context: Context, kept: Contracted) -> None:
        self._context = context
        self._kept = kept
        self._store: IcebergStore | None = None

    @property
    def store(self) -> IcebergStore:
        if self._store is None:
            raise RuntimeError("open() first")
        return self._store

    def open(self, *, guest: bool = False) -> IcebergStore:
        lake, table, terms, promise = self._context.lake, self._context.table, self._kept.terms, self._kept.promise
        if promise is not None:
            promise.check(lake, table.name)
        wanted = terms.contract or terms.rows.as_contract()
        terms.check_keys(wanted)
        self._check_bound(wanted)
        store = lake.open(
            table.name,
            wanted.ddl(constraints=True),
            partition_by=table.partition_by,
            properties={**_filters(terms), **table.properties},
            comment=terms.comment,
        )
        follow_contract(self._context, terms.contract, wanted, (table.name,))
        store.refresh()
        if promise is not None and not guest:
            promise.record(store)
        self._store = store
        return store

    def follow_edits(self, *, opened: bool) -> None:
        edit = self._kept.edited()
        if edit is None:
            return
        lake, name = self._context.lake, self._context.name
        if opened:
            if edit.promise is not None:
                edit.promise.check(lake, name)
            follow_contract(self._context, self._kept.terms.contract, edit.contract, (name,))
            if edit.promise is not None:
                edit.promise.record(lake.store(name))
        self._kept.agree(edit)

    def _check_bound(self, wanted: Contract) -> None:
        table = self._context.table
        wrong = unbounded(table.dedupe_within, {field.name: field.type for field in wanted})
        if wrong is not None:
            raise DeclarationError(
                f"{table.name} cannot look for duplicates within {', '.join(table.dedupe_within)}",
                why=wrong[0],
                fix=wrong[1],
            )


def follow_contract(
    context: Context, before: Contract | None, wanted: Contract, tables: Sequence[str]
) -> Mapping[str, Sequence[Step]]:
    """Bring the tables that have the contract's columns to it; the notice tells the steps of the table itself."""
    told = [str(change) for change in changes(before, wanted)] if before is not None and before != wanted else []
    steps = {name: evolve_table(context.lake, name, wanted) for name in tables}
    if told or any(steps.values()):
        taken = tuple(str(step) for step in steps[context.name])
        context.notices.add(SchemaChange(contract=wanted.title, steps=taken, changes=tuple(told)))
    return steps


def _filters(terms: Terms) -> dict[str, str]:
    """What the table holds of a few values is found by them where no partition bounds the search."""
    found = terms.unique.filters() if terms.unique else {}
    return found_by(terms.keys, terms.table.partition_by, found) if terms.dedups and not terms.near else found
