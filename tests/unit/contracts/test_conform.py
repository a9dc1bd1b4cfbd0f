"""A value is converted once: what became of it is asked of the column that holds it."""

from __future__ import annotations

from lodestream.contracts import Contract, Field, Reading
from lodestream.contracts.conform import conform, over_value


def failing(field: Field, incoming: str) -> tuple[str, str]:
    """Where a conversion fails, over the incoming column alone and over the converted value."""
    (made,) = conform(Contract("c", "1", (field,)), {field.name: incoming})
    return made.failed.sql, over_value(made, "made").sql


def test_a_conversion_is_not_repeated_to_see_whether_it_failed() -> None:
    plain, once = failing(Field("fare", "decimal(10,2)", reading=Reading(rounding="half_up")), "double")
    assert "try_cast" in plain
    assert once == "(`fare` IS NOT NULL AND `made` IS NULL)"


def test_the_way_back_is_held_against_the_incoming_value() -> None:
    """Without a rounding the converted value must give back the value that came."""
    _, once = failing(Field("fare", "decimal(10,2)"), "double")
    assert "NOT (try_cast(`made` AS double) <=> `fare`)" in once


def test_a_cast_inside_another_word_is_another_value() -> None:
    """`cast(x AS double)` is also the end of a `try_cast(x AS double)`, which is null where the other one raises."""
    plain, once = failing(Field("fare", "double"), "bigint")
    assert "cast(`fare` AS double)" in plain
    assert "try_`made`" not in once


def test_a_value_that_is_taken_as_it_is_needs_no_column_of_its_own() -> None:
    plain, once = failing(Field("fare", "double"), "double")
    assert plain == once
    assert "`fare`" in once
