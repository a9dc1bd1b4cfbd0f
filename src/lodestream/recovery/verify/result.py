"""What a verification found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["equal", "different", "not comparable", "cannot be verified"]
Kind = Literal["added", "missing", "changed"]
Values = Mapping[str, str | None]

EQUAL: Status = "equal"
DIFFERENT: Status = "different"
NOT_COMPARABLE: Status = "not comparable"
UNVERIFIABLE: Status = "cannot be verified"

DIFFERENT_CODE = 7
UNVERIFIABLE_CODE = 8


@dataclass(frozen=True, slots=True)
class Sample:
    """One row that differs, its values as text: `stored` in the table, `fresh` as computed again.

    An added row has no fresh side, a missing one no stored side. `columns` are those in which a changed row differs.
    """

    kind: Kind
    stored: Values | None = None
    fresh: Values | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Differences:
    """Stored rows against computed ones. `columns` counts, for each column, the changed rows that differ in it."""

    stored: int = 0
    fresh: int = 0
    added: int = 0
    missing: int = 0
    changed: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()

    @property
    def any(self) -> bool:
        return bool(self.added or self.missing or self.changed)

    @property
    def other_rows(self) -> bool:
        """Whether there are rows on one side alone, rather than other values in rows of both."""
        return bool(self.added or self.missing)


@dataclass(frozen=True, slots=True)
class Verification:
    """One table. `rows` compares what readers see, `state` what is kept beside it to follow changes.

    `sampled` is the number of keys that were compared instead of all, `seed` the one that chose them.
    """

    table: str
    status: Status
    reason: str | None = None
    snapshot: int | None = None
    rows: Differences = field(default_factory=Differences)
    state: Differences = field(default_factory=Differences)
    sampled: int | None = None
    seed: int | None = None
    ms: float = 0.0


def exit_code(found: Iterable[Verification]) -> int:
    """0 when nothing differs; a difference outweighs what could not be looked at."""
    statuses = {one.status for one in found}
    if DIFFERENT in statuses:
        return DIFFERENT_CODE
    return UNVERIFIABLE_CODE if UNVERIFIABLE in statuses else 0
