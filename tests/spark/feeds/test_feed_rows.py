"""The feed rows of a few changes, by hand: keys of several columns, maps, nulls, numbers that compare as no number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lodestream.flows.writing.upserts import same_rows, upserted
from lodestream.names import ORDER_KEY
from lodestream.tables.find import among, rows_of
from lodestream.tables.groupable import content

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS = ("a", "b")
COLUMNS = ("a", "b", "v", "m")


def rows(spark: SparkSession, place: str, *given: tuple[str, int, str, str, int, bool]) -> DataFrame:
    """(a, b, v and m as SQL, sequence, gone) as a frame; `place` is the name of its order."""
    lines = ", ".join(
        f"('{a}', {b}, {v}, {m}, named_struct('by_0', {at}, 'gone', {str(gone).lower()}))"
        for a, b, v, m, at, gone in given
    )
    typed = f"SELECT a, b, cast(v AS double) AS v, cast(m AS map<string,int>) AS m, p AS {place}"
    return spark.sql(f"{typed} FROM VALUES {lines} AS t(a, b, v, m, p)")


def fed(frame: DataFrame) -> set[tuple[Any, ...]]:
    return {(row.a, row.b, str(row.v), str(row.m), row._lode_order.by_0, row._weight) for row in frame.collect()}


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (("x", 1, "2", "map('k', 1)", 5, False), {("-1", 1), ("+1", 5)}),
        (("x", 1, "'NaN'", "map('k', 1)", 5, False), {("0", 5)}),  # nothing changed but its place
        (("x", 1, "'NaN'", "map('k', 2)", 5, False), {("-1", 1), ("+1", 5)}),
        (("x", 1, "'NaN'", "map('k', 1)", 0, False), set()),  # older than what is stored
        (("x", 2, "'NaN'", "map('k', 1)", 5, False), {("+1", 5)}),  # half of the key is another key
        (("x", 1, "null", "null", 5, True), {("-1", 1), ("0", 5)}),
        (("y", 1, "null", "null", 5, True), {("0", 5)}),  # a delete before its insert
    ],
)
def test_what_one_change_does_to_a_stored_row(spark: SparkSession, change: Any, wanted: set[Any]) -> None:
    stored = rows(spark, "_lode_order", ("x", 1, "'NaN'", "map('k', 1)", 1, False))
    found = upserted(rows(spark, ORDER_KEY, change), stored, None, KEYS, COLUMNS)
    signs = {1: "+1", -1: "-1", 0: "0"}
    assert {(signs[weight], at) for _, _, _, _, at, weight in fed(found)} == wanted


def test_a_mark_beats_older_changes_and_loses_to_newer_ones(spark: SparkSession) -> None:
    marks = rows(spark, "_lode_order", ("x", 1, "null", "null", 4, True)).select("a", "b", "_lode_order")
    changes = rows(spark, ORDER_KEY, ("x", 1, "1", "null", 3, False), ("x", 2, "1", "null", 3, False))
    assert fed(upserted(changes, None, marks, KEYS, COLUMNS)) == {("x", 2, "1.0", "None", 3, 1)}
    newer = rows(spark, ORDER_KEY, ("x", 1, "1", "null", 5, False))
    assert fed(upserted(newer, None, marks, KEYS, COLUMNS)) == {("x", 1, "1.0", "None", 5, 1)}


def test_insert_delete_insert_in_one_batch_leaves_the_last(spark: SparkSession) -> None:
    changes = rows(
        spark,
        ORDER_KEY,
        ("x", 1, "1", "null", 1, False),
        ("x", 1, "null", "null", 2, True),
        ("x", 1, "3", "null", 3, False),
    )
    assert fed(upserted(changes, None, None, KEYS, COLUMNS)) == {("x", 1, "3.0", "None", 3, 1)}


def test_keys_are_found_by_list_and_by_join_alike(spark: SparkSession) -> None:
    stored = spark.range(1000).selectExpr("concat('it''s \\\\ $', id) AS a", "id AS b")
    wanted = stored.where("b % 300 = 0")
    listed = [row.a for row in wanted.collect()]
    assert {row.b for row in rows_of(stored, ["a"], wanted, listed).collect()} == {0, 300, 600, 900}
    assert {row.b for row in rows_of(stored, ["a", "b"], wanted, listed).collect()} == {0, 300, 600, 900}
    assert {row.b for row in rows_of(stored, ["a"], wanted, []).collect()} == {0, 300, 600, 900}
    text = among("a", [f"k{number}" for number in range(450)], stored.schema["a"].dataType)
    assert text is not None
    assert text.count(" IN ") == 3


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("map(), timestamp'2024-01-01 00:00:00.000001'", "map(), timestamp'2024-01-01 00:00:00.000002'", False),
        ("map('a', 1, 'b', 2), timestamp'2024-01-01'", "map('b', 2, 'a', 1), timestamp'2024-01-01'", True),
        ("map('a', NULL), timestamp'2024-01-01'", "map(), timestamp'2024-01-01'", False),
        ("map('a', NULL), cast(NULL AS timestamp)", "map('a', NULL), cast(NULL AS timestamp)", True),
    ],
)  # fmt: skip
def test_rows_with_maps_are_compared_to_the_last_digit(spark: SparkSession, one: str, other: str, same: bool) -> None:
    kind = "struct<m:map<string,int>,t:timestamp>"
    frame = spark.sql(f"SELECT cast(struct({one}) AS {kind}) AS one, cast(struct({other}) AS {kind}) AS other")
    from pyspark.sql.functions import col

    told = frame.select(same_rows(frame, "one", "other"), content(col("one")) == content(col("other"))).first()
    assert told is not None
    assert tuple(told) == (same, same) if "'b'" not in one else told[0] is same
