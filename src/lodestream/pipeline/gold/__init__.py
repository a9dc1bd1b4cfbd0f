"""How a Gold table follows its inputs: the analysis of its SQL and the pieces an executor runs."""

from lodestream.pipeline.gold.analyse import analyse
from lodestream.pipeline.gold.plan import GoldPlan, InputInfo, StateColumn, Strategy, feed_view, now_view
from lodestream.pipeline.gold.statement import query_inputs

__all__ = [
    "GoldPlan",
    "InputInfo",
    "StateColumn",
    "Strategy",
    "analyse",
    "feed_view",
    "now_view",
    "query_inputs",
]
