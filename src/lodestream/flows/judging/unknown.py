"""Fields that events carry and the contract does not name: noticed and counted, never a reason to stop."""

from __future__ import annotations

from pyspark.sql import Column, Row
from pyspark.sql.functions import collect_set, count_if, expr, flatten, size, when
from pyspark.sql.functions import slice as part

from lodestream.contracts import quoting
from lodestream.names import CARRIED
from lodestream.sources.codecs.frame import Decoder

_COUNT, _NAMES = "unknown", "unknown_names"
# Every row of a small batch is looked at, of a larger one about as many: a second look at each would cost a second.
_MOST_ROWS = 20_000
_LONGEST_VALUE = 1_000_000
_MOST_NAMES = 20
# Events whose fields are named by their data bring new ones for ever: after so many, nobody learns from another one.
_MOST_TOLD = 1_000
_SHOWN = 80


class UnknownFields:
    """What is new among the top-level fields of JSON events. Other formats name their fields in a schema."""

    def __init__(self, decode: Decoder | None) -> None:
        columns = decode.codec.shape.columns if decode is not None and decode.codec.json_objects else ()
        self._known = sorted({name.lower() for column in columns for name in column.sources})
        self._told: set[str] = set()

    def looked(self, rows: int) -> str:
        """SQL for the rows of a batch that are looked at: of more than those the raw event is of no use here."""
        if not self._known:
            return "false"
        looked = f"octet_length({CARRIED}.value) < {_LONGEST_VALUE}"
        return looked if rows <= _MOST_ROWS else f"{looked} AND {_one_in(-(-rows // _MOST_ROWS))}"

    def aggregates(self, rows: int) -> list[Column]:
        """Beside the other counts of a batch, in the same job."""
        if not self._known:
            return []
        listed = ", ".join(map(quoting.text, self._known))
        keys = f"json_object_keys(CASE WHEN {self.looked(rows)} THEN cast({CARRIED}.value AS string) END)"
        unknown = expr(f"transform(filter({keys}, k -> NOT lower(k) IN ({listed})), k -> left(k, {_SHOWN}))")
        some = size(unknown) > 0
        return [
            count_if(some).alias(_COUNT),
            flatten(collect_set(when(some, part(unknown, 1, _MOST_NAMES)))).alias(_NAMES),
        ]

    def count(self, seen: Row) -> dict[str, int]:
        return {_COUNT: int(seen[_COUNT])} if self._known and seen[_COUNT] else {}

    def news(self, seen: Row) -> list[str]:
        """Names that nobody was told of yet."""
        if not self._known or len(self._told) >= _MOST_TOLD:
            return []
        new = sorted(set(seen[_NAMES]) - self._told)[:_MOST_NAMES]
        self._told.update(new)
        return new


def _one_in(share: int) -> str:
    return f"pmod(xxhash64({CARRIED}.value), {share}) = 0"
