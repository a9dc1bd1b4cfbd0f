"""Discard dead letters: they stay readable, and no replay chooses them again."""

from __future__ import annotations

from lodestream.flows.silver.flow import SilverFlow
from lodestream.recovery.choice import Choice
from lodestream.recovery.open_letters import OpenLetters


def discard(flow: SilverFlow, choice: Choice, *, note: str | None = None) -> int:
    """How many open letters were discarded. Again is harmless: they are not open any more."""
    if not flow.lake.exists(flow.name) or not flow.dead.exists():
        return 0
    flow.visit()
    try:
        letters = OpenLetters(flow.lake, flow.name, flow.dead.survey(flow.writer.store))
        chosen = letters.chosen(choice)
        found = chosen.count()
        if found:
            flow.dead.discard(chosen, note)
        return found
    finally:
        flow.leave()
