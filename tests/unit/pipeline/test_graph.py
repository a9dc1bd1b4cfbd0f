"""Resolving inputs, ordering tables, choosing some of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lodestream import Json, Kafka, Pipeline
from lodestream.errors import DeclarationError

FOLDER = Path(__file__).parent


def taxi() -> Pipeline:
    """Declared back to front: the order of declaration does not matter."""
    taxi = Pipeline("taxi")
    taxi.gold("by_zone", sql="select zone, count(*) n from silver.trips group by zone")
    taxi.gold("dim_zones", sql="select * from silver.zones")

    @taxi.silver(decode=Json("id int"))
    def trips(trips_raw: Any, zones: Any) -> Any:
        return trips_raw, zones

    taxi.reference("zones", "zones.csv")
    taxi.bronze("trips_raw", Kafka("t"))
    return taxi


def test_inputs_come_before_their_readers() -> None:
    graph = taxi().graph()
    for table in graph:
        assert all(graph.names.index(one) < graph.names.index(table.name) for one in graph.inputs(table.name))
    assert graph.inputs("silver.trips") == ("bronze.trips_raw", "silver.zones")
    assert graph.upstream("gold.by_zone") == tuple(
        one for one in graph.names if one in ("bronze.trips_raw", "silver.zones", "silver.trips")
    )
    assert set(graph.downstream("silver.zones")) == {"silver.trips", "gold.by_zone", "gold.dim_zones"}
    assert set(graph.readers("silver.zones")) == {"silver.trips", "gold.dim_zones"}


def test_reference_data_is_looked_up_unless_it_is_all_there_is() -> None:
    graph = taxi().graph()
    assert graph.lookups("silver.trips") == ("silver.zones",)
    assert graph.streams("silver.trips") == ("bronze.trips_raw",)
    assert graph["silver.trips"].lookups == ("zones",)
    assert graph.streams("gold.dim_zones") == ("silver.zones",)


def test_lookup_overrules_what_is_looked_up() -> None:
    pipeline = taxi()
    pipeline.gold("all_streamed", sql="select * from silver.trips, silver.zones", lookup=[])
    pipeline.gold("trips_whole", sql="select * from silver.trips, silver.zones", lookup="silver.trips")
    graph = pipeline.graph()
    assert graph.lookups("gold.all_streamed") == ()
    assert graph.lookups("gold.trips_whole") == ("silver.trips",)


def test_select_takes_patterns_and_short_names() -> None:
    graph = taxi().graph()
    assert set(graph.select(["silver.*"]).names) == {"silver.zones", "silver.trips"}
    some = graph.select(["by_zone", "bronze.*"])
    assert set(some.names) == {"gold.by_zone", "bronze.trips_raw"}
    assert some.inputs("gold.by_zone") == ("silver.trips",)
    assert "silver.trips" not in some
    with pytest.raises(DeclarationError, match=r"did you mean silver\.trips\?"):
        graph.select(["silver.tripz"])


def test_a_missing_input_points_at_its_line_and_the_nearest_name(tmp_path: Path) -> None:
    pipeline = taxi()
    query = tmp_path / "late.sql"
    query.write_text("select *\nfrom\n  silver.tripz\n")
    pipeline.gold("late", sql=query)

    @pipeline.silver
    def other(trip_raw: Any) -> Any:
        return trip_raw

    with pytest.raises(DeclarationError, match="2 problems") as caught:
        pipeline.graph()
    in_sql, in_python = caught.value.problems
    assert (in_sql.file, in_sql.line, in_sql.fix) == (str(query), 3, "did you mean silver.trips?")
    assert (in_python.file, in_python.fix) == (__file__, "did you mean trips_raw?")


def test_a_parameter_like_nothing_says_how_to_keep_it() -> None:
    pipeline = taxi()

    @pipeline.silver
    def other(trips_raw: Any, qqqq: Any) -> Any:
        return trips_raw, qqqq

    with pytest.raises(DeclarationError, match="give the parameter a default"):
        pipeline.graph()


def test_siblings_are_no_inputs() -> None:
    pipeline = taxi()
    pipeline.gold("dead", sql="select * from silver.trips__dead")
    with pytest.raises(DeclarationError, match="dead of trips is kept by Lodestream"):
        pipeline.graph()


def test_a_short_name_in_two_tiers_must_be_qualified() -> None:
    pipeline = taxi()
    pipeline.bronze("trips", Kafka("t"))

    @pipeline.gold(strategy="full")
    def report(trips: Any) -> Any:
        return trips

    with pytest.raises(DeclarationError) as caught:
        pipeline.graph()
    assert set(str(caught.value.fix).removeprefix("write ").split(" or ")) == {"silver__trips", "bronze__trips"}


def test_a_qualified_parameter_and_a_namesake_are_resolved() -> None:
    pipeline = Pipeline("p")
    pipeline.bronze("trips", Kafka("t"))

    @pipeline.silver
    def trips(trips: Any) -> Any:
        return trips

    @pipeline.gold(strategy="full")
    def report(silver__trips: Any) -> Any:
        return silver__trips

    graph = pipeline.graph()
    assert graph.inputs("silver.trips") == ("bronze.trips",)
    assert graph.inputs("gold.report") == ("silver.trips",)


def test_a_circle_is_shown_as_a_path() -> None:
    pipeline = Pipeline("p")
    pipeline.gold("a", sql="select * from gold.b")
    pipeline.gold("b", sql="select * from gold.c")
    pipeline.gold("c", sql="select * from gold.a")
    with pytest.raises(DeclarationError, match="in a circle") as caught:
        pipeline.graph()
    path = caught.value.what.partition("circle: ")[2].split(" -> ")
    reads = {"gold.a": "gold.b", "gold.b": "gold.c", "gold.c": "gold.a"}
    assert len(path) == 4
    assert all(reads[one] == following for one, following in pairwise(path))
    assert caught.value.file == __file__


def test_a_table_cannot_read_itself() -> None:
    pipeline = Pipeline("p")
    pipeline.gold("a", sql="select * from gold.a")
    with pytest.raises(DeclarationError, match=r"gold\.a -> gold\.a"):
        pipeline.graph()


def test_decode_needs_exactly_one_bronze_input() -> None:
    pipeline = taxi()
    pipeline.bronze("other_raw", Kafka("o"))
    pipeline.silver("both", sql="select * from bronze.trips_raw, bronze.other_raw", decode=Json("id int"))
    with pytest.raises(DeclarationError, match="decodes 2 Bronze inputs"):
        pipeline.graph()
