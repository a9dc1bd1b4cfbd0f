"""The plan that is run: what the analysis proves, as far as the engine carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lodestream.pipeline.gold.analyse import analyse
from lodestream.pipeline.gold.plan import GoldPlan, InputInfo, Strategy


def choose(sql: str, inputs: Sequence[InputInfo], force: Strategy | None = None) -> GoldPlan:
    """Sums per group are kept by delta; everything else is recomputed, in one atomic step."""
    plan = analyse(sql, inputs, force=force)
    if plan.strategy == "full" or (plan.strategy == "delta" and plan.state_home == "column"):
        return plan
    whole = analyse(sql, inputs, force="full")
    proven = "row by row" if plan.strategy == "delta" else "by affected keys"
    return replace(
        whole,
        reason=f"recomputed as a whole; it could be kept {proven}, which is planned and not yet run",
        cheaper=None,
    )
