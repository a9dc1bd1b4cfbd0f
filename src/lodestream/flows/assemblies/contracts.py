"""The terms of a Silver table, for the kinds of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lodestream.contracts import Contract
from lodestream.flows.code.declared import DeclaredInputs, DeclaredRows
from lodestream.flows.context import Context, Unfilled
from lodestream.flows.judging.judge import Judge
from lodestream.flows.judging.limits import LimitWatch, RefusedSince
from lodestream.flows.judging.terms import Contracted, Edits, Terms
from lodestream.flows.letters.table import DeadLetters
from lodestream.flows.promise import Promise
from lodestream.sources.codecs.frame import Decoder
from lodestream.tables.store import TableStore


@dataclass(frozen=True, slots=True)
class Agreed:
    """What a Silver table is declared with. `edits` are those of its contract while it runs."""

    inputs: DeclaredInputs
    contract: Contract | None = None
    decode: Decoder | None = None
    promise: Promise | None = None
    edits: Edits | None = None


def contracted(
    context: Context,
    agreed: Agreed,
    dead: DeadLetters,
    store: Callable[[], TableStore],
    *,
    judging: Callable[[Terms], Judge] = Judge.of,
    keyed: bool = False,
    keeps_result: bool = False,
) -> Contracted:
    """`keyed` tables judge every row and have no duplicates; `store` gives the table that carries positions."""
    table, lake = context.table, context.lake
    refused = RefusedSince(lake, dead, store)

    def terms(contract: Contract | None, decode: Decoder | None) -> Terms:
        keys = table.keys or (contract.keys if contract else ())
        judges = keyed or bool(contract or decode or keys or table.expectations)
        told = Unfilled(context.notices, table.name, contract)
        rows = DeclaredRows(lake, table, agreed.inputs, decode, judges, keeps_result, told.tell)
        limits = LimitWatch.of(table.name, contract, table.expectations, refused.recall)
        return Terms(table, contract, rows, keys, limits, judging, bool(keys) and not keyed)

    return Contracted(terms, agreed.contract, agreed.decode, agreed.promise, agreed.edits, context.notices)
