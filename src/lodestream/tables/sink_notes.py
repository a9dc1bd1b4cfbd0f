"""How the positions of sinks are written down: properties of one small table."""

from __future__ import annotations

TABLE = "lode.sinks"
PREFIX = "lode.sink."


def note_key(table: str, sink: str) -> str:
    return f"{table}/{sink}"
