"""The terms of a Silver table, for the kinds of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lodestream.contracts import Contract
from lodestream.contracts.conform import unfilled
from lodestream.contracts.thresholds import Tally
from lodestream.flows.code.declared import DeclaredInputs, DeclaredRows
from lodestream.flows.context import Context
from lodestream.flows.judging.judge import Judge
from lodestream.flows.judging.limits import LimitWatch, published_since
from lodestream.flows.judging.terms import Contracted, Edits, Terms
from lodestream.flows.letters.table import DeadLetters
from lodestream.flows.promise import Promise
from lodestream.observe import ColumnUnfilled
from lodestream.sources.codecs.frame import Decoder
from lodestream.tables.store import TableStore

log = logging.getLogger(__name__)


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
    judging: Callable[[Terms], Judge] | None = None,
    keyed: bool = False,
    keeps_result: bool = False,
) -> Contracted:
    """`keyed` tables judge every row and have no duplicates; `store` gives the table that carries positions."""
    table, lake = context.table, context.lake

    def refused_since(moment: float, reasons: Sequence[str]) -> Mapping[int, Tally]:
        letters = lake.whole(dead.name) if dead.exists() else None
        return published_since(store(), letters, moment, reasons)

    def terms(contract: Contract | None, decode: Decoder | None) -> Terms:
        keys = table.keys or (contract.keys if contract else ())
        judges = keyed or bool(contract or decode or keys or table.expectations)
        told = _Unfilled(context, contract)
        rows = DeclaredRows(lake, table, agreed.inputs, decode, judges, keeps_result, told.tell)
        limits = LimitWatch(table.name, contract, table.expectations, refused_since)
        return Terms(table, contract, rows, keys, limits, judging or _plain_judge, bool(keys) and not keyed)

    return Contracted(terms, agreed.contract, agreed.decode, agreed.promise, agreed.edits, context.notices)


def _plain_judge(terms: Terms) -> Judge:
    table = terms.table
    return Judge(table.name, terms.contract, table.filters, table.expectations, terms.arrival, terms.keys)


@dataclass(frozen=True, slots=True)
class _Unfilled:
    """Tells once of each column that nobody returns: it stays null for ever, and no row is refused for it."""

    context: Context
    contract: Contract | None

    def tell(self, columns: Sequence[str]) -> None:
        missing = unfilled(self.contract, columns) if self.contract else ()
        news = self.context.notices.new(ColumnUnfilled, missing)
        if self.contract is not None and news:
            self.context.notices.add(ColumnUnfilled(columns=tuple(news), contract=self.contract.title))
            log.warning("column.unfilled table=%s columns=%s", self.context.name, ",".join(news))
