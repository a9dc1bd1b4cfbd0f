from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodestream.config import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("200 ms", 0.2),
        ("1 s", 1),
        ("1s", 1),
        ("1.5 min", 90),
        ("15 minutes", 900),
        ("2 H", 7200),
        ("1 day", 86400),
    ],
)
def test_durations_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "-1 s", "1 s 2", "nan s", "1 parsec", "1e3 s"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a duration|unknown unit"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**9))
def test_what_is_shown_reads_back_the_same(millis: int) -> None:
    assert parse_duration(format_duration(millis / 1000)) == pytest.approx(millis / 1000, rel=1e-9)
