"""The contract's conditions on real Spark: true exactly where a row breaks it, and never null."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lodestream.contracts import Contract, Field, Limits, Reading, Rule, conform, load_contract
from lodestream.contracts.quoting import text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def broken(spark: SparkSession, contract: Contract, rows: str, arrival: str | None = None) -> list[list[str]]:
    """The reasons of each row, in the order of `rows` (a VALUES list whose first column is the row number)."""
    names = ", ".join(f"`{field.name.replace('`', '``')}`" for field in contract.fields)
    extra = ", arrival" if arrival else ""
    frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(n, {names}{extra})").localCheckpoint()
    found = contract.violations(arrival=arrival)
    counted = frame.selectExpr("n", *(f"{one.sql} AS v{i}" for i, one in enumerate(found))).orderBy("n").collect()
    assert all(value is not None for row in counted for value in row), "a condition was null"
    return [[one.reason for i, one in enumerate(found) if row[f"v{i}"]] for row in counted]


def test_limits_speak_of_values_and_required_of_nulls(spark: SparkSession) -> None:
    contract = Contract(
        "t",
        "1.0.0",
        (
            Field(
                "a", "int", required=True, limits=Limits(minimum=0, maximum=10, exclusive_maximum=True, multiple_of=2)
            ),
            Field("b", "string", limits=Limits(values=("x", "it's", "${env:HOME}", "\\"), max_length=11)),
            Field("c", "string", limits=Limits(pattern=r"^\d{2}\.\w$", min_length=4)),
            Field("d", "date", limits=Limits(minimum="2024-01-01")),
            Field("e", "array<int>", limits=Limits(min_items=1, max_items=2, unique_items=True)),
        ),
    )
    rows = r"""
        (1, 0, 'x', '12.a', date'2024-01-01', array(1, 2)),
        (2, NULL, NULL, NULL, NULL, NULL),
        (3, -2, 'it\'s', '12xa', date'2023-12-31', array()),
        (4, 10, '${env:HOME}', '1', date'9999-12-31', array(1, 1)),
        (5, 3, '\\', '12.a', date'2024-01-01', array(1, 2, 3)),
        (6, 4, 'yyyyyyyyyyyy', '12.a', date'2024-01-01', array(NULL))
    """
    session = spark.newSession()
    session.conf.set("spark.sql.variable.substitute", "false")
    reasons = broken(session, contract, rows)
    assert reasons[0] == []
    assert reasons[1] == ["a is null"]
    assert reasons[2] == [
        "a is below 0",
        r"c does not match ^\d{2}\.\w$",
        "d is below 2024-01-01",
        "e has fewer than 1 items",
    ]
    assert reasons[3] == [
        "a is not below 10",
        r"c does not match ^\d{2}\.\w$",
        "c is shorter than 4",
        "e has an item twice",
    ]
    assert reasons[4] == ["a is not a multiple of 2", "e has more than 2 items"]
    assert reasons[5] == ["b is not one of x, it's, ${env:HOME}, \\", "b is longer than 11"]


@pytest.mark.parametrize(
    ("pattern", "fits", "unfit"),
    [
        ("^[A-Z]{2}$", "AA", "AA\n"),
        ("^[A-Z$]{2}$", "A$", "A$\r\n"),
        (r"^a\$$", "a$", "a$\n"),
        (r"^(x|\Qa$\E)$", "a$", "a$\u2028"),
        ("(?m)^a$", "a\nb", "ab"),
    ],
)
def test_a_pattern_ends_where_the_text_ends(spark: SparkSession, pattern: str, fits: str, unfit: str) -> None:
    contract = Contract("t", "1.0.0", (Field("b", "string", limits=Limits(pattern=pattern)),))
    assert broken(spark, contract, f"(1, {text(fits)}), (2, {text(unfit)})") == [[], [f"b does not match {pattern}"]]


def test_values_with_a_dollar_are_not_replaced_by_spark(spark: SparkSession) -> None:
    contract = Contract("t", "1.0.0", (Field("b", "string", limits=Limits(values=("${env:HOME}",))),))
    assert broken(spark, contract, "(1, concat('$', '{env:HOME}')), (2, 'other')") == [
        [],
        ["b is not one of ${env:HOME}"],
    ]


def test_a_rule_must_be_true_and_null_is_not_true(spark: SparkSession) -> None:
    contract = Contract(
        "t",
        "1.0.0",
        (Field("fare", "double"),),
        rules=(
            Rule("not negative", "fare >= 0 -- refunds"),
            Rule("small", "fare < 1000", "fail"),
            Rule("round", "fare = 1", "warn"),
        ),
    )
    reasons = broken(spark, contract, "(1, 5D), (2, -1D), (3, cast(NULL AS double)), (4, 2000D)")
    assert reasons == [[], ["rule: not negative"], ["rule: not negative", "rule: small"], ["rule: small"]]
    assert [warning.reason for warning in contract.warnings()] == ["rule: round"]


NOON = {"timestamp": "timestamp'2024-01-01 12:00:00Z'", "timestamp_ntz": "timestamp_ntz'2024-01-01 07:00:00'"}


def test_late_is_measured_from_arrival_whatever_the_session_zone(spark: SparkSession) -> None:
    session = spark.newSession()
    for zone in ("UTC", "Asia/Tokyo"):
        session.conf.set("spark.sql.session.timeZone", zone)
        for kind, value in NOON.items():
            field = Field("at", kind, reading=Reading(zone="America/New_York"))
            contract = Contract("t", "1.0.0", (field,), event_time="at", lateness=60.0)
            rows = f"""(1, {value}, timestamp'2024-01-01 12:01:00Z'),
                       (2, {value}, timestamp'2024-01-01 12:01:00.000001Z'),
                       (3, cast(NULL AS {kind}), timestamp'2024-01-01 12:01:00Z')"""
            assert broken(session, contract, rows, arrival="arrival") == [[], ["late"], []], (zone, kind)


def test_nested_requirements_hold_where_the_parent_is_there(spark: SparkSession) -> None:
    inner = (Field("zip", "string", required=True), Field("n", "int", limits=Limits(maximum=5)))
    kind = "struct<zip:string,n:int>"
    contract = Contract(
        "t",
        "1.0.0",
        (
            Field("home", kind, fields=inner),
            Field("stops", f"array<{kind}>", items=Field("element", kind, required=True, fields=inner)),
        ),
    )
    rows = f"""
        (1, cast(NULL AS {kind}), cast(NULL AS array<{kind}>)),
        (2, named_struct('zip', cast(NULL AS string), 'n', 9), array(named_struct('zip', 'a', 'n', 1))),
        (3, named_struct('zip', 'a', 'n', 1), array(NULL, named_struct('zip', cast(NULL AS string), 'n', 9)))
    """
    assert broken(spark, contract, rows) == [
        [],
        ["home.zip is null", "home.n is above 5"],
        ["stops[] is null", "stops[].zip is null", "stops[].n is above 5"],
    ]


def test_hostile_names_are_only_names(spark: SparkSession) -> None:
    names = ["a b", "x`y", "select", "drop table t; --", "a.b", "'quote'", "ünïcode", "a\\b", "/* c */"]
    fields = tuple(Field(name, "int", required=True, limits=Limits(maximum=1)) for name in names)
    contract = Contract("t", "1.0.0", fields)
    values = ", ".join("2" for _ in names)
    (reasons,) = broken(spark, contract, f"(1, {values})")
    assert reasons == [f"{name} is above 1" for name in names]
    assert spark.createDataFrame([], contract.ddl()).columns == names
    conformed = conform(contract, dict.fromkeys(names, "bigint"))
    frame = spark.createDataFrame(
        [], ", ".join(f"{c.value} int" for c in conform(contract, dict.fromkeys(names, "int")))
    )
    assert [one.origins for one in conformed] == [(name,) for name in names]
    assert frame.selectExpr(*(one.value for one in conformed)).count() == 0


def test_the_shown_value_is_short_text_of_any_type(spark: SparkSession) -> None:
    text = Field("s", "string", limits=Limits(max_length=1))
    contract = Contract("t", "1.0.0", (text, Field("m", "map<string,int>", limits=Limits(max_items=0))))
    shown = [one.shown for one in contract.violations()]
    row = spark.sql("SELECT repeat('x', 500) AS s, map('k', 1) AS m").selectExpr(*(one or "" for one in shown)).first()
    assert row is not None
    assert (len(row[0]), row[1]) == (80, "{k -> 1}")


def test_a_renamed_field_is_read_under_both_names(spark: SparkSession) -> None:
    contract = Contract("t", "1.0.0", (Field("seats", "int", source="passenger_count", aliases=("passengers",)),))
    frame = spark.sql(
        "SELECT * FROM VALUES (1L, NULL), (NULL, '2'), (NULL, NULL), (99999999999L, NULL)"
        " AS t(passenger_count, passengers)"
    )
    (found,) = conform(contract, dict(frame.dtypes), by="source")
    rows = frame.selectExpr(f"{found.value} AS v", f"{found.failed.sql} AS f").collect()
    assert [(row.v, row.f) for row in rows] == [(1, False), (None, True), (None, False), (None, True)]
    assert found.refusal is not None, "text needs lode.coerce"


def test_a_field_in_another_case_is_found_only_when_the_contract_says_so() -> None:
    strict, loose = Field("VendorID", "int"), Field("VendorID", "int", reading=Reading(any_case=True))
    assert conform(Contract("t", "1", (strict,)), {"vendorid": "int"})[0].origins == ()
    assert conform(Contract("t", "1", (loose,)), {"vendorid": "int"})[0].origins == ("vendorid",)


def test_the_taxi_contract_conforms_and_judges_real_rows(spark: SparkSession, request_root: Path) -> None:
    folder = request_root / "examples" / "nyc_taxi" / "contracts"
    trips, event = load_contract(folder / "trip.yaml"), load_contract(folder / "trip_event.yaml")
    rows = [
        '{"VendorID":2,"tpep_pickup_datetime":"2024-01-05T10:00:00","tpep_dropoff_datetime":"2024-01-05T10:10:00",'
        '"trip_distance":1.5,"fare_amount":12.345,"total_amount":15.0}',
        '{"tpep_pickup_datetime":"2024-02-01T00:00:00","tpep_dropoff_datetime":"2024-02-01T00:10:00",'
        '"trip_distance":1.5,"fare_amount":-3}',
        '{"tpep_pickup_datetime":"2024-01-05T10:00:00Z","trip_distance":1.5,"fare_amount":3}',
    ]
    raw = spark.createDataFrame([(n, row) for n, row in enumerate(rows)], "n int, v string")
    decoded = raw.selectExpr("n", f"from_json(v, '{event.ddl()}') AS e").selectExpr("n", "e.*", "md5('x') AS trip_id")
    columns = conform(trips, {k: v for k, v in decoded.dtypes if k != "n"}, by="source")
    assert [one.refusal for one in columns] == [None] * 20
    conformed = decoded.selectExpr(
        "n",
        *(f"{one.value} AS `{one.field.name}`" for one in columns),
        *(f"{one.failed.sql} AS `_f{i}`" for i, one in enumerate(columns)),
    )
    found = trips.violations()
    judged = conformed.selectExpr("*", *(f"{one.sql} AS `_v{i}`" for i, one in enumerate(found))).orderBy("n").collect()
    reasons = [
        [one.failed.reason for i, one in enumerate(columns) if row[f"_f{i}"]]
        + [one.reason for i, one in enumerate(found) if row[f"_v{i}"]]
        for row in judged
    ]
    assert str(judged[0]["fare_amount"]) == "12.35"
    assert reasons[0] == []
    assert reasons[1] == ["rule: fare_amount is not negative", "rule: pickup is in January 2024"]
    assert reasons[2] == ["pickup_datetime is not a timestamp_ntz", "dropoff_datetime is null"]
