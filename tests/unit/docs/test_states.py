"""Every state that a flow can be in is explained, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from lodestream.engine import runner, status

DOCS = Path(__file__).parents[3] / "docs"
HEADER = "| state | meaning | what to do |"


def explained() -> set[str]:
    tables = [text.split(HEADER)[1].split("\n\n")[0] for text in _texts() if HEADER in text]
    return {state for table in tables for state in re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)}


def _texts() -> list[str]:
    return [file.read_text(encoding="utf-8") for file in DOCS.glob("*.md")]


def test_the_documentation_explains_every_state_and_no_other() -> None:
    shown = {status.TableStatus("t", "gold").state, *getattr(status, "_STATES", {}).values()}
    assert explained() == {*get_args(runner.State), *shown}
