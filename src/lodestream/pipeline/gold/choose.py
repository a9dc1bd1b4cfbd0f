"""The plan that is run: what the analysis proves."""

from __future__ import annotations

from collections.abc import Sequence

from lodestream.pipeline.gold.analyse import analyse
from lodestream.pipeline.gold.plan import GoldPlan, InputInfo, Strategy


def choose(sql: str, inputs: Sequence[InputInfo], force: Strategy | None = None) -> GoldPlan:
    return analyse(sql, inputs, force=force)
