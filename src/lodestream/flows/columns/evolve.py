"""Bring a table to what its contract says now, while it runs: columns are added, widened and renamed in place."""

from __future__ import annotations

from collections.abc import Sequence

from lodestream.contracts import Contract
from lodestream.contracts.evolution import Obstacle, Step, evolve
from lodestream.errors import CatalogUnavailable, ContractError
from lodestream.failpoints import reach
from lodestream.tables.evolving import apply_steps, columns_of
from lodestream.tables.lake import Lake

_MOST_TRIES = 5


def evolve_table(lake: Lake, name: str, contract: Contract) -> tuple[Step, ...]:
    """The steps that this call has taken. Worked out from the table as it is: after a crash or beside another run
    what is left is found, and what is done is not done again."""
    taken: tuple[Step, ...] = ()
    failed = CatalogUnavailable(
        f"{name} does not follow its contract {contract.title}",
        why="the catalog said that the change is committed, and the table does not show it",
    )
    for _ in range(_MOST_TRIES):
        store = lake.store(name)
        schema, required = columns_of(lake.whole(name).schema)
        found = evolve(schema, contract, required=required)
        if found.obstacles:
            raise _refused(name, contract, found.obstacles)
        if not found.steps:
            return taken
        reach("evolve.before", name)
        try:
            apply_steps(lake.spark, store, found.steps)
        except CatalogUnavailable as error:
            failed = error
            continue
        reach("evolve.after", name)
        taken = found.steps  # whether they were is seen in the table
    raise failed


def _refused(name: str, contract: Contract, obstacles: Sequence[Obstacle]) -> ContractError:
    fixes = dict.fromkeys(one.fix for one in obstacles)
    return ContractError(
        f"{name} cannot follow its contract {contract.title}",
        why="; ".join(f"{'.'.join(one.path)}: {one.why}" for one in obstacles),
        fix="; ".join(fixes),
        problems=tuple(obstacles),
    )
