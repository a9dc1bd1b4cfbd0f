"""How the tables around a Gold table hang together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Ways:
    """How the tables around one Gold table hang together.

    `edges` are the followed inputs of everything upstream, `homes` the table that a name's positions speak of (a keyed
    table is read through its feed). `leaders` are, per input, other readers of it that meet this table again further
    down: landing on a position that one of them has published makes the two agree soon.
    """

    inputs: tuple[str, ...]
    edges: Mapping[str, tuple[str, ...]]
    homes: Mapping[str, str] = field(default_factory=dict)
    leaders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def diamond(self) -> bool:
        reached = [self._upstream(name) for name in self.inputs]
        return any(one & other for n, one in enumerate(reached) for other in reached[:n])

    def _upstream(self, name: str) -> set[str]:
        return {name}.union(*(self._upstream(one) for one in self.edges.get(name, ())))
