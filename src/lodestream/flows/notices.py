"""What a table's log should say of a batch: gathered by the parts, taken by whoever runs the flow."""

from __future__ import annotations

from collections.abc import Iterable

from lodestream.observe import Event


class Notices:
    """Events without a table: whoever runs the flow says which it is."""

    def __init__(self) -> None:
        self._waiting: list[Event] = []
        self._told: set[tuple[type[Event], str]] = set()

    def add(self, event: Event) -> None:
        self._waiting.append(event)

    def new(self, event: type[Event], names: Iterable[str]) -> list[str]:
        """Those of the names that this event was not told of yet; from now on they are."""
        found = [name for name in names if (event, name) not in self._told]
        self._told.update((event, name) for name in found)
        return found

    def take(self) -> list[Event]:
        """What was noticed since the last call."""
        taken, self._waiting = self._waiting, []
        return taken
