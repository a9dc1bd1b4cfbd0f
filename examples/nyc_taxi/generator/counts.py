"""What a stretch of the stream contains, so that a pipeline's own counts can be checked against it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

import numpy as np

from .dirt import CORRECTION, DELETE, DUPLICATE, LATE, MALFORMED, OUT_OF_ORDER, Kinds
from .fares import Columns
from .month import in_month


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of events. `negative` to `rejected` count readable events, duplicates of them included."""

    events: int = 0
    trips: int = 0  # distinct trips: events that are no duplicate, correction, delete or malformed
    late: int = 0
    out_of_order: int = 0
    corrections: int = 0
    deletes: int = 0
    duplicates: int = 0
    malformed: int = 0
    negative: int = 0
    outside: int = 0
    nulls: int = 0
    zero_distance: int = 0
    rejected: int = 0  # negative fare or pickup outside the month: Silver refuses them
    rejected_duplicates: int = 0

    @property
    def kept(self) -> int | None:
        """Rows of silver.trips; unknown from counts alone once trips are corrected or deleted."""
        if self.corrections or self.deletes:
            return None
        return self.events - self.malformed - self.rejected - (self.duplicates - self.rejected_duplicates)

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def as_dict(self) -> dict[str, int | None]:
        return {**asdict(self), "kept": self.kept}


def count(trips: Columns, kinds: Kinds, rows: slice) -> Counts:
    """Count one stretch of a block."""
    kinds = kinds[rows]
    readable = kinds != MALFORMED
    negative = (trips["fare_amount"][rows] < 0) & readable
    outside = ~in_month(trips["pickup"][rows]) & readable
    rejected = negative | outside
    of_kind = {kind: int(np.count_nonzero(kinds == kind)) for kind in range(MALFORMED + 1)}
    return Counts(
        events=len(kinds),
        trips=int(np.count_nonzero(kinds <= OUT_OF_ORDER)),
        late=of_kind[LATE],
        out_of_order=of_kind[OUT_OF_ORDER],
        corrections=of_kind[CORRECTION],
        deletes=of_kind[DELETE],
        duplicates=of_kind[DUPLICATE],
        malformed=of_kind[MALFORMED],
        negative=int(np.count_nonzero(negative)),
        outside=int(np.count_nonzero(outside)),
        nulls=int(np.count_nonzero((trips["missing"][rows] == 1) & readable)),
        zero_distance=int(np.count_nonzero((trips["trip_distance"][rows] == 0) & readable)),
        rejected=int(np.count_nonzero(rejected)),
        rejected_duplicates=int(np.count_nonzero(rejected & (kinds == DUPLICATE))),
    )
