"""Silver: decoded, conformed to the contract, deduplicated. Every input row is accounted for."""

from __future__ import annotations

from lodestream.flows.assemblies.contracts import Agreed, contracted
from lodestream.flows.assemblies.silver_table import SilverTable
from lodestream.flows.context import Context
from lodestream.flows.flow import Flow
from lodestream.flows.guests.visit import Visited
from lodestream.flows.guests.waiting import GuestGate
from lodestream.flows.intake import SourceIntake
from lodestream.flows.letters.table import DeadLetters
from lodestream.flows.parts import Parts
from lodestream.flows.writing.home import SilverHome
from lodestream.flows.writing.making import SilverMaking
from lodestream.flows.writing.note_keys import NoteKeys
from lodestream.pipeline import Table
from lodestream.tables.lake import Lake


def silver_table(lake: Lake, table: Table, run: str, agreed: Agreed) -> SilverTable:
    """A table that only grows: the first row of a key stays."""
    context, inputs = Context.of(lake, table, run), agreed.inputs
    dead = DeadLetters(lake, table.name, run)
    kept = contracted(context, agreed, dead, lambda: home.store)
    home = SilverHome(context, kept)
    intake = SourceIntake(inputs.sources, inputs.starting)
    making = SilverMaking(context, kept, home, intake, dead, inputs=inputs)
    flow = Flow(context, Parts(intake, home, making, (NoteKeys(kept, home),), GuestGate()))
    careful = SilverMaking(context, kept, home, intake, dead, inputs=inputs, careful=True)
    return SilverTable(flow, kept, Visited(context, home, careful, inputs))
