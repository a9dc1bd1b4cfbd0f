"""A filter made of values that Python had lets every row through that has one of them, or there is none."""

from __future__ import annotations

import pytest
from pyspark.sql import Row
from pyspark.sql.types import LongType, StringType

from lodestream.flows.columns.pruning import Pruning, _inside
from lodestream.pipeline import parse_partition
from lodestream.tables.find import among

# What Python shows of bytes that are no UTF-8, whichever they were.
LOST = b"\xff".decode(errors="replace")


def test_keys_are_listed_unless_one_of_them_is_no_text() -> None:
    assert among("k", ["b", "a"], StringType()) == "(k IN ('a', 'b'))"
    assert among("k", ["b", LOST], StringType()) is None
    assert among("k", [2, 1], LongType()) == "(k IN (1, 2))"


@pytest.mark.parametrize(("low", "high", "each"), [("a", "b" + LOST, None), (LOST, "b", None), ("a", "c", ["a", LOST])])
def test_partitions_are_pruned_unless_one_of_them_is_no_text(low: str, high: str, each: list[str] | None) -> None:
    place = parse_partition("place")
    pruning = Pruning(((place, "string"),))

    def told(low: str, high: str, each: list[str] | None) -> Row:
        return Row(**{f"min {place}": low, f"max {place}": high, f"each {place}": each, f"none {place}": 0})

    assert _inside(place, "string", told("a", "c", ["c", "a"])) == "(`place` IN ('a', 'c'))"
    assert _inside(place, "string", told(low, high, each)) is None
    assert pruning.ranges(told("a", "c", None).asDict()) == {"place": ("'a'", "'c'")}
    if each is None:
        assert pruning.ranges(told(low, high, each).asDict()) == {}
