"""What is read from a query."""

from __future__ import annotations

import pytest

from lodestream.errors import DeclarationError
from lodestream.pipeline import Location
from lodestream.pipeline.sql import parse_query, query_aggregates, query_inputs

FILE = Location("daily.sql", 1)


def inputs(text: str) -> list[str]:
    return [one.name for one in query_inputs(parse_query(text, FILE))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select * from silver.trips", ["silver.trips"]),
        ("select * from Silver.`Trips` t join lode.silver.zones z on t.z = z.id", ["silver.trips", "silver.zones"]),
        ("with t as (select * from silver.trips) select * from t", ["silver.trips"]),
        ("with trips as (select * from trips) select * from trips", ["trips"]),
        ("with r as (select 1 as a) select * from r, gold.x", ["gold.x"]),
        ("select * from a union all select * from b", ["a", "b"]),
        ("select * from a where id in (select id from b)", ["a", "b"]),
        ("select * from a lateral view explode(items) e as item", ["a"]),
        ("select explode(sequence(1, 3)) as d", []),
        ("select * from range(10)", []),
        ("select window(at, '1 min').start s, count(*) n from a group by window(at, '1 min')", ["a"]),
        ("select sum(x) over w from a window w as (partition by b)", ["a"]),
    ],
)
def test_inputs_are_tables_and_not_ctes_or_functions(text: str, expected: list[str]) -> None:
    assert sorted(inputs(text)) == expected


def test_broken_sql_points_at_its_line() -> None:
    with pytest.raises(DeclarationError, match="does not parse") as caught:
        parse_query("select a\nfrom x\nwhere (\n", FILE)
    assert (caught.value.file, caught.value.line) == ("daily.sql", 3)
    assert "<class" not in str(caught.value)


def test_broken_sql_inside_python_points_at_the_call() -> None:
    with pytest.raises(DeclarationError, match="does not parse") as caught:
        parse_query("select a\nfrom x\nwhere (\n", Location("pipeline.py", 40), inline=True)
    assert (caught.value.file, caught.value.line) == ("pipeline.py", 40)
    assert "line 3" in str(caught.value.fix)


def test_a_call_of_window_is_shown_as_it_was_written() -> None:
    (group,) = query_aggregates(parse_query("select b from t group by window(at, '1 min'), b", FILE))
    assert "window(at, '1 min')" in group.text


@pytest.mark.parametrize("text", ["", "-- nothing", "select 1; select 2", "create table x as select 1", "drop table x"])
def test_anything_but_one_query_is_refused(text: str) -> None:
    with pytest.raises(DeclarationError, match="not one query"):
        parse_query(text, FILE)


@pytest.mark.parametrize(
    ("text", "folds"),
    [
        ("select a, count(*) from t group by a", True),
        ("select max(a) from t", True),
        ("select count_if(a > 1), collect_list(b) from t", True),
        ("select a, row_number() over (partition by a order by b) from t", False),
        ("select sum(a) over (partition by b) from t", False),
        ("select first(a) ignore nulls over (partition by b order by c) from t", False),
        ("select sum(a) over w from t window w as (partition by b)", False),
        ("select b from t group by Window(at, '1 min'), b", True),
        ("select distinct a from t", False),
        ("select upper(a), greatest(b, c) from t", False),
    ],
)
def test_windows_keep_their_rows_and_aggregates_do_not(text: str, folds: bool) -> None:
    assert bool(query_aggregates(parse_query(text, FILE))) is folds
