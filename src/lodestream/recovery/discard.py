"""Discard dead letters: they stay readable, and no replay chooses them again."""

from __future__ import annotations

from lodestream.flows.guests.visit import Visit, Visited
from lodestream.recovery.choice import Choice
from lodestream.recovery.open_letters import OpenLetters


def discard(table: Visited, choice: Choice, *, note: str | None = None) -> int:
    """How many open letters were discarded. Again is harmless: they are not open any more."""
    if not table.has_letters():
        return 0
    visit = Visit(table)
    try:
        letters = OpenLetters(table.context.lake, table.name, visit.dead.survey(visit.writer.store))
        chosen = letters.chosen(choice)
        found = chosen.count()
        if found:
            visit.dead.discard(chosen, note)
        return found
    finally:
        visit.leave()
