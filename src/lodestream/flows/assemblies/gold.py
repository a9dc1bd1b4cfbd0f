"""Gold: equal to a recompute over its inputs, always; kept by the way that its plan proves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lodestream.contracts import Contract
from lodestream.flows.agreement import Agreement
from lodestream.flows.context import Context
from lodestream.flows.flow import Flow
from lodestream.flows.gold.home import GoldHome
from lodestream.flows.gold.intake import GoldIntake
from lodestream.flows.gold.making import GoldMaking
from lodestream.flows.gold.table import GoldInput, GoldTable
from lodestream.flows.parts import Parts
from lodestream.flows.promise import Promise
from lodestream.pipeline import Table
from lodestream.tables.lake import Lake


@dataclass(frozen=True, slots=True)
class KeptGold:
    """`flow` keeps the table; `table` says how, and can be asked to rebuild it."""

    flow: Flow
    table: GoldTable
    home: GoldHome


def gold_table(
    lake: Lake,
    table: Table,
    run: str,
    inputs: Sequence[GoldInput],
    *,
    contract: Contract | None = None,
    promise: Promise | None = None,
    agreement: Agreement | None = None,
) -> KeptGold:
    context = Context.of(lake, table, run)
    gold = GoldTable(context, inputs, contract)
    home = GoldHome(gold, promise)
    intake = GoldIntake(gold, agreement)
    flow = Flow(context, Parts(intake, home, GoldMaking(gold), taking=intake, repair=gold))
    return KeptGold(flow, gold, home)
