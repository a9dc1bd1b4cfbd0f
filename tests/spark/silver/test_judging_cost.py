"""A row that nothing speaks against costs no list of reasons, and each of its values is converted once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lodestream.contracts import Contract, Field, Reading, rule
from lodestream.flows.judging.judge import Judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = Contract(
    "trips",
    "1",
    (Field("fare", "decimal(10,2)", required=True, reading=Reading(rounding="half_up")), Field("at", "timestamp_ntz")),
    rules=(rule("paid", "fare > 0"),),
)


def test_conversions_run_once_and_lists_are_made_behind_a_condition(spark: SparkSession) -> None:
    rows = spark.range(3).selectExpr(
        "id - 1.5D AS fare",
        "CASE WHEN id = 2 THEN 'noon' ELSE '2024-01-01T10:00:00' END AS at",
        "named_struct('id', id) AS _lode",
    )
    judged = Judge("silver.trips", CONTRACT).conformed(rows)
    plan = judged._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("as decimal(10,2))") == 1, plan
    assert plan.count("as timestamp_ntz)") == 1, plan
    # The function that leaves out what was not said is not compiled: it stands behind a compiled condition.
    assert plan.count("lambdafunction") == plan.count("THEN knownnotcontainsnull(filter("), plan
    found = {row["_lode"]["id"]: list(row["_reasons"]) for row in judged.collect()}
    assert found == {0: ["rule: paid"], 1: ["rule: paid"], 2: ["at is not a timestamp_ntz: noon"]}
