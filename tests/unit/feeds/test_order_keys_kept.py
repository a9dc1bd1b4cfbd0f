"""A keyed table goes on only with the columns in which its rows keep their places."""

from __future__ import annotations

import pytest

from lodestream.tables.order_keys_kept import kept_otherwise

OWN = ["id", "amount"]
PLACE = ["_lode_order_by_0", "_lode_order_partition", "_lode_order_offset", "_lode_order_topic"]


@pytest.mark.parametrize("held", [[*OWN, *PLACE], [*PLACE[::-1], *OWN], OWN])
def test_a_table_that_fits_or_never_had_places_is_not_refused_here(held: list[str]) -> None:
    assert kept_otherwise("silver.orders", held, PLACE) is None


@pytest.mark.parametrize("shown", [["_lode"], ["_lode_by_0", "_lode_offset"]])
def test_places_that_readers_see_are_told_as_an_earlier_version(shown: list[str]) -> None:
    refused = kept_otherwise("silver.orders", [*OWN, *shown], PLACE)
    assert refused is not None
    assert "earlier version" in refused.what
    assert "drop silver.orders, silver.orders__changes and silver.orders__marks: the next run" in str(refused)


@pytest.mark.parametrize(
    "wanted", [["_lode_order_by_0", "_lode_order_by_1", *PLACE[1:]], ["_lode_order_by_0", "_lode_order_content"]]
)
def test_another_order_of_changes_is_told_with_both_ways_out(wanted: list[str]) -> None:
    refused = kept_otherwise("silver.orders", [*OWN, *PLACE], wanted)
    assert refused is not None
    assert "otherwise than declared" in refused.what
    assert wanted[1] in str(refused)
    assert "declare sequence_by as it was" in str(refused)
    assert "silver.orders__changes and silver.orders__marks" in str(refused)
