"""A table's snapshots as its metadata tells them: what `main` is, and what it was."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

from lodestream.tables.snapshot import Snapshot


class History(ABC):
    """One table, as it was when looked at."""

    name: str

    @property
    @abstractmethod
    def uuid(self) -> str: ...

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's own properties."""
        return {}

    @abstractmethod
    def head(self) -> Snapshot | None: ...

    @abstractmethod
    def snapshot(self, snapshot_id: int) -> Snapshot | None: ...

    def ancestors(self, start: Snapshot | None) -> Iterator[Snapshot]:
        current = start
        while current is not None:
            yield current
            current = self.snapshot(current.parent) if current.parent is not None else None

    def last_stamped(self) -> Snapshot | None:
        return next((one for one in self.ancestors(self.head()) if one.stamp is not None), None)
