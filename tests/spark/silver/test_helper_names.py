"""Columns that a batch has while it is made take no name away from the user's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from silver_line import SilverLine

from lodestream import Json, Kafka, Pipeline
from lodestream.contracts import Contract, Field, write_contract
from lodestream.errors import UserCodeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Each was the name of a column that flows made for themselves, or sounds like one.
PLAIN = (
    "_again", "_alive", "_at", "_begins", "_claim", "_claiming", "_event", "_first", "_here", "_known", "_last",
    "_line", "_made", "_mark", "_new", "_newer", "_notice", "_number", "_old", "_place", "_rank", "_row",
    "_same", "_side", "_stored", "_taken", "_taken_0", "_there", "_unfit", "_was", "beside",
)  # fmt: skip
FIELDS = {
    "_key": "bigint",
    "_held": "string",
    "_seq": "bigint",
    "_on": "timestamp_ntz",
    **dict.fromkeys(PLAIN, "string"),
}
POSITIVE: Any = {"positive": ("part > 0", "quarantine")}
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in FIELDS.items())


def event(key: int, seq: int, held: str) -> dict[str, Any]:
    texts = {name: f"{name} of {key}.{seq}" for name in PLAIN}
    return {"_key": key, "_seq": seq, "_held": held, "_on": f"2024-01-0{seq}T00:00:00", **texts}


def test_a_table_may_have_columns_of_any_name_that_is_not_refused(
    line: Callable[[Pipeline], SilverLine], tmp_path: Path
) -> None:
    pipeline = Pipeline("names")
    pipeline.bronze("events", Kafka("events"))
    fields = [Field(name, kind, unique=name == "_held") for name, kind in FIELDS.items()]
    contract = tmp_path / "firsts.odcs.yaml"
    write_contract(Contract("firsts", "1.0.0", fields=tuple(fields), owner="tests"), contract)

    def all_of_it(events: DataFrame) -> DataFrame:
        return events

    pipeline.silver("firsts", decode=Json(SCHEMA), contract=str(contract), keys="_key")(all_of_it)
    pipeline.silver("lasts", decode=Json(SCHEMA), keys=("_key", "_row"), sequence_by="_seq")(all_of_it)
    pipeline.silver("versions", decode=Json(SCHEMA), keys="_side", sequence_by="_on", history=True)(all_of_it)

    @pipeline.silver("derived")
    def derived(lasts: DataFrame) -> DataFrame:
        return lasts

    pipeline.gold("whole", sql="SELECT * FROM silver.lasts")
    pipeline.gold("ranks", sql="SELECT _rank, count(*) AS _new, max(_old) AS _old FROM silver.lasts GROUP BY _rank")
    taxi = line(pipeline)
    taxi.send(event(1, 1, "a"), event(2, 1, "b"), event(1, 2, "a"), event(3, 1, "a"))
    taxi.run(taxi.flows())
    taxi.send({**event(1, 3, "a"), "_row": "_row of 1.1", "_side": "_side of 1.1"}, event(2, 1, "b"), event(4, 1, "b"))
    taxi.run(taxi.flows())

    def rows(table: str) -> list[dict[str, Any]]:
        found = taxi.lake.whole(table).select("_key", "_seq", *PLAIN).collect()
        return sorted((row.asDict() for row in found), key=lambda row: (row["_key"], row["_seq"]))

    def texts(row: dict[str, Any]) -> dict[str, Any]:
        said = {key: value for key, value in event(row["_key"], row["_seq"], "").items() if key in row}
        moved = {"_row": "_row of 1.1", "_side": "_side of 1.1"} if row["_seq"] == 3 else {}
        return {**said, **moved}

    expected = {
        "silver.firsts": [(1, 1), (2, 1)],
        "silver.lasts": [(1, 2), (1, 3), (2, 1), (3, 1), (4, 1)],
        "silver.versions": [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (4, 1)],
        "silver.derived": [(1, 2), (1, 3), (2, 1), (3, 1), (4, 1)],
        "gold.whole": [(1, 2), (1, 3), (2, 1), (3, 1), (4, 1)],
    }
    for table, keys in expected.items():
        found = rows(table)
        assert [(row["_key"], row["_seq"]) for row in found] == keys, table
        assert found == [texts(row) for row in found], table
    counted = {row["_rank"]: (row["_new"], row["_old"]) for row in taxi.lake.whole("gold.ranks").collect()}
    assert counted["_rank of 1.3"] == (1, "_old of 1.3")
    assert len(counted) == 5


def test_a_gold_column_of_ours_that_only_spark_sees_is_refused_before_the_table_is_made(
    line: Callable[[Pipeline], SilverLine],
) -> None:
    pipeline = Pipeline("names")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver("rows", decode=Json("id int"))
    def rows(events: DataFrame) -> DataFrame:
        return events

    @pipeline.silver("parts", decode=Json("id int, beside string, parts array<int>"), expect=POSITIVE)
    def parts(events: DataFrame) -> DataFrame:
        return events.selectExpr("id", "beside", "explode(parts) AS part", "_lode")

    pipeline.gold("hidden", sql="SELECT s.* FROM (SELECT named_struct('_lode', id) AS s FROM silver.rows)")
    taxi = line(pipeline)
    taxi.send({"id": 1, "beside": "me", "parts": [1, -1, 2]})
    with pytest.raises(UserCodeError, match="returns a column _lode"):
        taxi.run(taxi.flows())
    assert not taxi.lake.exists("gold.hidden")
    assert taxi.rows("silver.parts", "beside", "part") == [("me", 1), ("me", 2)]
    assert taxi.rows("silver.parts__dead", "beside", "reasons") == [(2, ["expect: positive"])]
