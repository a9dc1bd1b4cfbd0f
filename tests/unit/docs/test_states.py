"""Every state that a flow can be in is explained, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from lodestream.engine import runner, status
from lodestream.observe import event_types

DOCS = Path(__file__).parents[3] / "docs"
HEADER = "| state | meaning | what to do |"


def explained(page: str) -> set[str]:
    table = (DOCS / page).read_text(encoding="utf-8").split(HEADER)[1].split("\n\n")[0]
    return set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def test_the_documentation_explains_every_state_and_no_other() -> None:
    """Each page by itself: who reads one does not know of the other."""
    of_a_flow = {state for part in get_args(runner.ShownState) for state in get_args(part)}
    assert explained("running.md") == of_a_flow, "`lode flow list` shows these"
    told = {one.flow_state for one in event_types() if one.flow_state}
    assert explained("states.md") == {*of_a_flow, *told, status.TableStatus("t", "gold").state}
