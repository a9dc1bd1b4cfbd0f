"""Gold rows: equal to a recompute over the inputs, always; how they get there is the plan's choice."""

from __future__ import annotations

from lodestream.errors import AuditFailed, LodeError
from lodestream.flows.batch import Batch, Span
from lodestream.flows.gold.batches import OverwriteBatch
from lodestream.flows.gold.change import change_groups, pass_rows
from lodestream.flows.gold.fold import folded
from lodestream.flows.gold.function import recompute_declared
from lodestream.flows.gold.keys import recompute_keys
from lodestream.flows.gold.rebuild import must_rebuild, rebuild
from lodestream.flows.gold.refusals import refuses_a_value
from lodestream.flows.gold.state import StateBatch, changed_state
from lodestream.flows.gold.table import GoldTable
from lodestream.flows.gold.views import Inputs
from lodestream.flows.parts import Making
from lodestream.observe import Rebuilt
from lodestream.pipeline.gold.plan import NEGATIVE, GoldPlan, feed_view
from lodestream.tables.jvm import causes


class GoldMaking(Making):
    """`whole` makes all rows anew, whatever has changed."""

    def __init__(self, gold: GoldTable, *, whole: bool = False) -> None:
        self._gold = gold
        self._whole = whole
        # Whether the batch at hand follows a change, rather than compute everything.
        self._follows = False

    def make(self, span: Span) -> Batch:
        gold = self._gold
        gold.follow_shapes(span.to)
        inputs = Inputs(gold.lake.spark, gold.tables, span)
        if not gold.tried and not must_rebuild(gold, span, inputs):
            gold.try_plan()
        self._follows = not self._whole and not must_rebuild(gold, span, inputs)
        if not self._follows:
            if gold.lost_state and span.previous is not None and not gold.rebuilding:
                gold.context.notices.add(Rebuilt(why="another tool rewrote its files and left out its state"))
            return rebuild(gold, span, inputs)
        plan = gold.plan
        if plan is None:
            return recompute_declared(gold, inputs, span)
        if plan.strategy == "affected" or any(name in plan.on_lookup_change for name in inputs.changed):
            gold.expect(max(span.rows, gold.read_rows(span) // 10))
            return recompute_keys(gold, plan, inputs, span)
        if plan.state_home == "table":
            return self._restate(plan, span, inputs)
        if plan.shape == "rows":
            return pass_rows(gold, plan, inputs, span)
        if plan.stored_keys and gold.stored_rows > gold.small:
            return change_groups(gold, plan, inputs, span)
        return OverwriteBatch(gold, folded(gold, plan, span), span.rows)

    def instead(self, error: Exception) -> Making | None:
        """A statement that follows a change computes expressions in another order than the query, and for other rows.

        So it can meet a value that a filter or a join keeps from the query: a cast that fails, a division by zero. Only
        the query itself can tell whether the value matters.
        """
        if not self._follows or not refuses_a_value(error):
            return None
        why = f"what follows its changes was refused: {str(error).splitlines()[0]}"
        self._gold.context.notices.add(Rebuilt(why=why))
        return GoldMaking(self._gold, whole=True)

    def explain(self, error: Exception) -> LodeError | None:
        if NEGATIVE in str(error) or any(NEGATIVE in message for _, message in causes(error)):
            name = self._gold.name
            return AuditFailed(
                f"{name}: a group would hold fewer rows than none",
                why="its input took a row away that this table never got",
                fix=f"rebuild {name}; if it happens again, report it with `lode events --table {name}`",
            )
        return None

    def _restate(self, plan: GoldPlan, span: Span, inputs: Inputs) -> Batch:
        gold = self._gold
        known = gold.state.of(span.previous)
        if known is None:
            return rebuild(gold, span, inputs)
        for name in plan.inputs:
            if name == plan.stream:
                inputs.changes(name).createOrReplaceTempView(feed_view(name))
            else:
                inputs.show_now(name)
        return StateBatch(gold, plan, changed_state(gold, plan, gold.state.rows(known)), span)
