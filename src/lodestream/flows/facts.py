"""What a batch tells of the rows it wrote, for the parts that follow its publication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lodestream.tables.swap import Place


@dataclass(frozen=True, slots=True)
class Facts:
    """How many rows came, went and only mark a place.

    Of those that went: the first key, when they are few, and between which values of the partition columns they lie;
    and `places`, where they lay in the table as of its snapshot `state`, when a batch has just looked them up. Of those
    that came, their `entries` in the directory of keys, when they are few; of those that mark a place, `remembered`, on
    top of the snapshot `marks_state` of the marks.
    """

    came: int = 0
    gone: int = 0
    marks: int = 0
    replaced: tuple[object, ...] = ()
    within: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    places: tuple[Place, ...] = ()
    state: int | None = None
    entries: tuple[int, ...] = ()
    remembered: tuple[int, ...] = ()
    marks_state: int | None = None
    replacing: int = 0  # how many of those that came took the place of one that went

    @property
    def deleted(self) -> int:
        """Rows that went and that no other row replaced."""
        return self.gone - self.replacing

    def placed(self, state: int) -> bool:
        """Whether it is known where each row that went lies in this very snapshot of the table."""
        return self.state == state and len(self.places) == self.gone

    @property
    def of_marks(self) -> Facts:
        """The same of the table of marks, which only grows."""
        return Facts(came=self.marks, state=self.marks_state, entries=self.remembered)
