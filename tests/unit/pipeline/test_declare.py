"""Declaring tables: what is kept, what is refused, and where errors point."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from lodestream import Debezium, Files, Json, Kafka, Pipeline
from lodestream.errors import DeclarationError
from lodestream.pipeline import Expectation, Filter

HERE = str(Path(__file__))


def here(offset: int = 0) -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno + offset


@pytest.fixture
def taxi() -> Pipeline:
    return Pipeline("taxi")


def test_a_decorated_function_stays_the_function_itself(taxi: Pipeline) -> None:
    def trips(trips_raw: int, zones: int) -> int:
        return trips_raw + zones

    assert taxi.silver(keys="trip_id")(trips) is trips
    assert trips(1, 2) == 3
    table = taxi.tables["silver.trips"]
    assert (table.kind, table.inputs, table.keys, table.function) == (
        "function", ("trips_raw", "zones"), ("trip_id",), trips,
    )  # fmt: skip


def test_a_bare_decorator_works_too(taxi: Pipeline) -> None:
    @taxi.silver
    def trips(trips_raw: str) -> str:
        return trips_raw.upper()

    assert trips("x") == "X"
    assert taxi.tables["silver.trips"].inputs == ("trips_raw",)


def test_tables_know_file_and_line(taxi: Pipeline) -> None:
    raw = taxi.bronze("trips_raw", Kafka("taxi.trips"))
    assert (raw.location.file, raw.location.line) == (HERE, here(-1))

    @taxi.silver(owner="fleet")
    def trips(trips_raw: Any) -> Any:
        return trips_raw

    assert taxi.tables["silver.trips"].location.line == here(-4)


def test_every_option_is_kept(taxi: Pipeline, tmp_path: Path) -> None:
    contract = tmp_path / "trip.yaml"
    contract.write_text("x")

    @taxi.silver(
        decode=Debezium(Json()),
        contract=contract,
        keys=["a", "b"],
        sequence_by="updated_at",
        delete_when="op = 'd'",
        history=True,
        partition_by=["days(at)", "bucket( 16,a )"],
        every="15 min",
        owner="fleet",
        lookup=["zones"],
        filters={"completed": "status = 'done'"},
        expect={"positive": "fare >= 0", "has id": ("a is not null", "fail")},
        expect_action="drop",
        description="Trips",
        properties={"write.format": "x", "flag": True},  # type: ignore[dict-item]
    )
    def trips(raw: Any, zones: Any, *, month: str = "2024-01") -> Any:
        return raw, zones, month

    table = taxi.tables["silver.trips"]
    assert table.contract == contract
    assert table.inputs == ("raw", "zones")
    assert table.lookup == ("zones",)
    assert (table.keys, table.sequence_by, table.every) == (("a", "b"), ("updated_at",), 900.0)
    assert table.partition_by == ("days(at)", "bucket(16, a)")
    assert table.filters == (Filter("completed", "status = 'done'"),)
    assert table.expectations == (
        Expectation("positive", "fare >= 0", "quarantine"),
        Expectation("has id", "a is not null", "fail"),
    )
    assert table.properties == {"write.format": "x", "flag": "true"}


def test_a_gold_table_is_verified_as_often_as_it_says(taxi: Pipeline) -> None:
    assert taxi.gold("daily", sql="select 1 from silver.r", verify="1 h").verify == 3600.0
    assert taxi.gold("weekly", sql="select 1 from silver.r").verify is None


def test_an_expectation_only_warns_unless_told_otherwise(taxi: Pipeline) -> None:
    table = taxi.silver("t", sql="select * from bronze.r", expect={"positive": "fare >= 0"})
    assert [one.action for one in table.expectations] == ["warn"]


def test_a_query_file_is_found_beside_the_declaring_file(taxi: Pipeline) -> None:
    folder = Path(__file__).parent
    assert folder.joinpath("daily.sql").is_file()
    table = taxi.gold("daily", sql="daily.sql", every="1 s")
    assert table.sql_path == folder / "daily.sql"
    assert table.inputs == ("silver.trips", "zones")
    assert [place.line for place in table.input_locations] == [3, 7]


def test_paths_of_files_are_taken_from_the_declaring_file(taxi: Pipeline) -> None:
    folder = Path(__file__).parent
    landed = taxi.bronze("landed", Files("landing", format="csv")).source
    remote = taxi.bronze("remote", Files("s3://bucket/landing")).source
    assert isinstance(landed, Files)
    assert isinstance(remote, Files)
    assert (landed.path, remote.path) == (str(folder / "landing"), "s3://bucket/landing")
    zones = taxi.reference("zones", "zones.csv", keys="location_id")
    assert (zones.name, zones.kind, zones.keys) == ("silver.zones", "reference", ("location_id",))


def refused(words: str, declare: Any) -> DeclarationError:
    with pytest.raises(DeclarationError) as caught:
        declare()
    assert words in str(caught.value)
    assert caught.value.file == HERE
    assert str(caught.value).startswith(f"{HERE}:{caught.value.line}: ")
    return caught.value


@pytest.mark.parametrize(
    ("name", "better"),
    [("Trips", "trips"), ("tripMetrics", "trip_metrics"), ("silver.trips", "trips"), ("a b", "a_b"),
     ("1st", "t_1st"), ("trips__dead", "trips_dead"), ("trips_", "trips"), ("_x", "x"), ("", "t")],
)  # fmt: skip
def test_names_that_cannot_be_are_refused_with_a_better_one(taxi: Pipeline, name: str, better: str) -> None:
    error = refused("cannot be the name", lambda: taxi.bronze(name, Kafka("t")))
    assert error.fix == f'use "{better}"'


def test_a_second_table_of_the_same_name_names_the_first(taxi: Pipeline) -> None:
    taxi.bronze("a", Kafka("t"))
    line = here(-1)
    error = refused("bronze.a is declared twice", lambda: taxi.bronze("a", Kafka("t")))
    assert f"{HERE}:{line}" in str(error.why)


def test_functions_that_are_no_table_are_refused(taxi: Pipeline) -> None:
    def starred(*args: Any) -> None: ...
    def named(raw: Any, **rest: Any) -> None: ...
    def positional(raw: Any, /) -> None: ...
    def nothing() -> None: ...
    async def later(raw: Any) -> None: ...

    refused("takes *args", lambda: taxi.silver(starred))
    refused("takes **rest", lambda: taxi.silver(named))
    refused("by position only", lambda: taxi.silver(positional))
    refused("has no inputs", lambda: taxi.silver(nothing))
    refused("coroutine", lambda: taxi.silver(later))
    refused("cannot be the name", lambda: taxi.silver(lambda raw: raw))
    assert taxi.tables == {}


def test_wrong_options_are_refused_with_the_fix(taxi: Pipeline) -> None:
    def silver(**options: Any) -> Any:
        return lambda: taxi.silver("t", sql="select * from bronze.r", **options)

    assert refused('unknown option "key"', silver(key="id")).fix == "did you mean keys?"
    refused("not a duration", silver(every="soon"))
    refused("every", silver(every=5))
    refused("more than nothing", silver(every="0 s"))
    refused("not a duration", lambda: taxi.gold("t", sql="select 1 from silver.r", verify="sometimes"))
    refused("more than nothing", lambda: taxi.gold("t", sql="select 1 from silver.r", verify="0 s"))
    refused('unknown option "verify"', silver(verify="1 h"))
    refused("keys=3", silver(keys=3))
    refused("twice", silver(keys=["a", "a"]))
    refused("sequence_by needs keys", silver(sequence_by="at"))
    refused("history needs keys", silver(history=True))
    refused("no SQL expression", silver(keys="a", delete_when="op = = 'd'"))
    refused('filter "done"', silver(filters={"done": "status ="}))
    refused("must name each filter", silver(filters="a = 1"))
    refused("unknown action", silver(expect={"x": "a > 0"}, expect_action="explode"))
    refused("decode", silver(decode="json"))
    refused('lookup names "zonez"', silver(lookup="zonez"))
    refused("looks up all", silver(lookup="bronze.r"))
    refused("unknown strategy", lambda: taxi.gold("g", sql="select * from silver.t", strategy="fast"))  # type: ignore[call-overload]
    assert taxi.tables == {}


def test_a_contract_that_is_not_there_is_refused_where_the_tables_are_put_together(taxi: Pipeline) -> None:
    taxi.bronze("r", Kafka("t"))
    taxi.silver("t", sql="select * from bronze.r", contract="nowhere.yaml")
    refused("no such file", taxi.graph)
    nearly = Pipeline("nearly")
    nearly.bronze("r", Kafka("t"))
    nearly.silver("t", sql="select * from bronze.r", contract="zone.csv")
    assert "zones.csv" in str(refused("no such file", nearly.graph).fix)


def test_a_gold_function_must_say_its_keys(taxi: Pipeline) -> None:
    def daily(trips: Any) -> Any:
        return trips

    refused("gold.daily needs keys", lambda: taxi.gold(daily))
    taxi.gold(strategy="full")(daily)
    assert list(taxi.tables) == ["gold.daily"]


def test_bronze_takes_a_source_and_nothing_else(taxi: Pipeline) -> None:
    refused("has no source", lambda: taxi.bronze("a", lambda rows: rows))  # type: ignore[arg-type]


def test_two_pipelines_share_nothing() -> None:
    one, two = Pipeline("one"), Pipeline("two")
    one.bronze("a", Kafka("t"))
    assert two.tables == {}
