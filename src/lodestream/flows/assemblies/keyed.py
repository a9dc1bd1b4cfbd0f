"""Keyed tables: the last change of each key wins, deletes included, and a feed says what changed.

The feed is published and carries the positions of the inputs; then it is applied to the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql.types import StructType

from lodestream.flows.applying.keyed import ApplyFeed, KeyedHome, KeyedMaking
from lodestream.flows.applying.opening import KeyedOpening
from lodestream.flows.assemblies.contracts import Agreed, contracted
from lodestream.flows.assemblies.keyed_shapes import derived_shape, keyed_shape, version_shape
from lodestream.flows.assemblies.silver_table import SilverTable
from lodestream.flows.context import Context
from lodestream.flows.flow import Flow
from lodestream.flows.guests.visit import Visited
from lodestream.flows.guests.waiting import GuestGate
from lodestream.flows.intake import SourceIntake
from lodestream.flows.judging.judge import Judge, KeyedJudge
from lodestream.flows.judging.terms import Terms
from lodestream.flows.letters.table import DeadLetters
from lodestream.flows.parts import Parts
from lodestream.flows.writing.feed_rows import Keeping, every_version, last_of_each_key
from lodestream.names import VALID_FROM
from lodestream.pipeline import Table
from lodestream.sources.table.changes import KeyedChanges
from lodestream.tables.lake import Lake


@dataclass(frozen=True, slots=True)
class _Kind:
    keeping: Keeping
    judging: Callable[[Terms], Judge]
    shape: Callable[[Terms], StructType]
    identity: Callable[[Terms], Sequence[str]] = lambda terms: terms.keys
    follows: KeyedChanges | None = None


def keyed_table(lake: Lake, table: Table, run: str, agreed: Agreed) -> SilverTable:
    """The last change of each key."""
    kind = _Kind(last_of_each_key(truncates=_cdc(table)), KeyedJudge.of, keyed_shape)
    return _assembled(lake, table, run, agreed, kind)


def history_table(lake: Lake, table: Table, run: str, agreed: Agreed) -> SilverTable:
    """Every version of a row: SCD type 2."""
    keeping = every_version(truncates=_cdc(table))
    kind = _Kind(keeping, KeyedJudge.of, version_shape, lambda terms: (*terms.keys, VALID_FROM))
    return _assembled(lake, table, run, agreed, kind)


def derived_table(lake: Lake, table: Table, run: str, agreed: Agreed, follows: KeyedChanges) -> SilverTable:
    """Made from a keyed table: it follows every change there, and has a feed of its own."""
    shape = partial(derived_shape, followed=follows.name)
    return _assembled(lake, table, run, agreed, _Kind(last_of_each_key(), Judge.of_followed, shape, follows=follows))


def _assembled(lake: Lake, table: Table, run: str, agreed: Agreed, kind: _Kind) -> SilverTable:
    context, inputs, follows = Context.of(lake, table, run), agreed.inputs, kind.follows
    dead = DeadLetters(lake, table.name, run)
    kept = contracted(
        context, agreed, dead, lambda: home.store, judging=kind.judging, keyed=True, keeps_result=follows is not None
    )
    home = KeyedHome(context, kept, KeyedOpening(context, kind.shape, kind.identity))
    # A lookup changes seldom: how old the rows are is told by the input that is followed.
    dating = {inputs.driving} if follows is not None and inputs.corrected else None
    intake = SourceIntake(inputs.sources, inputs.starting, dating)
    applying = ApplyFeed(home)
    making = KeyedMaking(
        context, kept, home, intake, dead, inputs=inputs, applying=applying, keeping=kind.keeping, follows=follows
    )
    flow = Flow(context, Parts(intake, home, making, (applying,), GuestGate()))
    return SilverTable(flow, kept, Visited(context, home, making, inputs, home.leave, follows))


def _cdc(table: Table) -> bool:
    return table.decode is not None and table.decode.notice is not None
