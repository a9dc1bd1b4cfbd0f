"""The rows of a large batch are made twice: judged first, then made again while they are written.

Both must be the same rows. Code that depends on the clock or on chance could refuse a row the first time and pass it
the second, so the two are compared, and a batch that differs is made once more and kept whole in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, Observation

from lodestream.flows.judging.judged_rows import JudgedRows
from lodestream.flows.judging.raising import raised_by_row
from lodestream.flows.judging.retention import NeedsWhole, claimed, event_hash, same_claims
from lodestream.names import CARRIED


class Repeat:
    """Does nothing for a batch that is kept whole."""

    def __init__(self, judged: JudgedRows) -> None:
        self._judged = judged
        self._observed: Observation | None = None

    def watched(self, rows: DataFrame) -> DataFrame:
        """The rows that are written, counted on their way."""
        if not self._judged.made_again:
            return rows
        self._observed = Observation()
        event = event_hash(rows.schema[CARRIED].dataType)
        return rows.observe(self._observed, *claimed(self._judged.claiming, event))

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Columns that nobody counts are computed now: code that raises on a row of them raises here."""
        try:
            yield
        except Exception as error:
            if self._judged.made_again and raised_by_row(error) is not None:
                raise NeedsWhole(str(error)) from error
            raise

    def compare(self) -> None:
        if self._observed is not None and not same_claims(self._judged.seen.asDict(), self._observed.get):
            raise NeedsWhole("other rows were written than were judged")
