"""`lode plan --deep`: Spark reads every function and query over empty tables, and says where each is wrong."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lodestream.config import load_config
from lodestream.engine.deep import ask_spark
from lodestream.pipeline import Finding
from lodestream.pipeline.query_check import check_query, result_columns
from lodestream.planning.plan import Plan, make_plan
from lodestream.planning.project import open_project

sys.path.insert(0, str(Path(__file__).parents[2]))

from shop_texts import CONTRACT, PIPELINE, RIGHT, TABLES, WRONG

EXAMPLES = Path(__file__).parents[3] / "examples"
SHOP = f"""\
from pyspark.sql import functions as f

{PIPELINE}
KNOWN = True  # what is decided at run time can be read by Spark alone


@shop.silver(owner="me")
def dated(orders):
    if KNOWN:
        return orders.withColumn("day", f.to_date("ordered_at"))


@shop.silver(owner="me")
def misspelt(orders):
    found = orders.withColumn("day", f.to_date("ordered_at"))
    return found.withColumn("x", f.col("statuss"))


@shop.silver(owner="me")
def paid(orders):
    if KNOWN:
        return orders.filter("paid")


@shop.silver(keys="order_id", sequence_by="chang", decode=Json("order_id bigint, changed timestamp"))
def ordered(raw):
    return raw if KNOWN else None


@shop.gold(keys="status")
def by_status(orders):
    return orders.groupBy("status").agg(f.sum("amont").alias("a"))


@shop.gold(keys="status")
def raising(orders):
    return orders.no_such_thing()


shop.silver("spelt", sql="spelt.sql", owner="me")
shop.gold("parts", sql="parts.sql", owner="me", partition_by="dayy")
shop.gold("days", sql="days.sql", owner="me")
shop.gold("top", sql="SELECT max(nn) AS n FROM gold.days", owner="me")
shop.gold("own", sql="own.sql", owner="me")
shop.gold("added", sql="added.sql", owner="me")
shop.gold("loose", sql="loose.sql", owner="me")
shop.gold("behind", sql="SELECT x, count(*) AS n FROM silver.misspelt GROUP BY x", owner="me")
"""
QUERIES = {
    "spelt.sql": "SELECT\n  order_id,\n  upper(stat) AS s\nFROM silver.orders",
    "parts.sql": "SELECT day, count(*) AS n FROM silver.dated GROUP BY day",
    "days.sql": "SELECT day, count(*) AS n FROM silver.dated GROUP BY day",
    "own.sql": "SELECT\n  day,\n  -- my_own is mine\n  max(my_own(status)) AS n\nFROM silver.dated GROUP BY day",
    "added.sql": "SELECT day,\n\n  sum(tags) AS t FROM silver.dated GROUP BY day",
    "loose.sql": "SELECT day,\n  status,\n  count(*) AS n FROM silver.dated GROUP BY day",
}


@pytest.fixture(scope="module")
def planned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Plan:
    root = tmp_path_factory.mktemp("shop")
    (root / "order.yaml").write_text(CONTRACT)
    (root / "pipeline.py").write_text(SHOP)
    for file, text in QUERIES.items():
        (root / file).write_text(text)
    project = open_project(load_config(root))
    plan = make_plan(project, deep=ask_spark(project))
    assert not (root / ".lode").exists()
    return plan


def line(found: Finding) -> str:
    return Path(found.location.file).read_text().splitlines()[found.location.line - 1]


def test_everything_is_told_at_once_with_its_line_and_the_nearest_name(planned: Plan) -> None:
    found = {one.table: one for one in planned.findings if one.severity == "error"}
    said = {table: (line(one).strip(), one.message.partition(": ")[2], one.fix) for table, one in found.items()}
    assert said["silver.misspelt"] == (
        'return found.withColumn("x", f.col("statuss"))',
        "statuss is no column of its inputs",
        "did you mean status?",
    )
    assert said["silver.spelt"][::2] == ("upper(stat) AS s", "did you mean status?")
    assert said["silver.paid"][:2] == ('return orders.filter("paid")', "it drops rows that nothing accounts for")
    assert said["silver.ordered"][1:] == (
        'sequence_by names "chang", which it does not have',
        "did you mean changed?",
    )
    assert said["gold.by_status"] == (
        'return orders.groupBy("status").agg(f.sum("amont").alias("a"))',
        "amont is no column of its inputs",
        "did you mean amount?",
    )
    assert said["gold.raising"][0] == "return orders.no_such_thing()"
    assert said["gold.parts"][1:] == ('partition_by names "dayy", which it does not have', "did you mean day?")
    assert said["gold.own"][:2] == ("max(my_own(status)) AS n", "there is no function my_own")
    assert said["gold.added"][0] == "sum(tags) AS t FROM silver.dated GROUP BY day"
    assert said["gold.loose"][:2] == ("status,", "status is neither grouped nor aggregated")
    assert said["gold.top"][2] == "did you mean n?"
    assert set(said) == {
        "silver.misspelt", "silver.spelt", "silver.paid", "silver.ordered", "gold.by_status", "gold.raising",
        "gold.parts", "gold.own", "gold.added", "gold.loose", "gold.top",
    }  # fmt: skip


def test_what_is_made_from_a_wrong_table_is_said_to_wait_for_it(planned: Plan) -> None:
    (found,) = [one for one in planned.findings if one.table == "gold.behind"]
    assert (found.severity, "silver.misspelt" in found.why) == ("warning", True)


def test_the_way_of_a_table_is_decided_over_the_columns_that_spark_gives(planned: Plan) -> None:
    assert {one.name: one.strategy for one in planned.tables}["gold.days"] == "delta"


@pytest.mark.parametrize("example", ["nyc_taxi", "orders"])
def test_spark_finds_nothing_wrong_with_the_examples(spark: SparkSession, tmp_path: Path, example: str) -> None:
    shutil.copytree(EXAMPLES / example, tmp_path / example)
    project = open_project(load_config(tmp_path / example))
    plan = make_plan(project, deep=ask_spark(project))
    assert plan.findings == ()
    assert "undecided" not in {one.strategy for one in plan.tables}


@pytest.fixture
def tables(lake: Any) -> SparkSession:
    """Empty tables by their own names, so that a query is read exactly as it is written."""
    from lodestream.tables.lake import Lake

    own = Lake(lake.spark, lake.config.catalog.name)
    for name, columns in TABLES.items():
        own.open(name, ", ".join(f"`{column}` {kind}" for column, kind in columns.items()))
    return own.spark


def test_what_is_said_without_java_is_what_spark_says(tables: SparkSession) -> None:
    for sql in RIGHT:
        columns = tables.sql(sql).columns
        assert check_query(sql, TABLES) == [], sql
        given = result_columns(sql, TABLES)
        assert given is None or [one.lower() for one in given] == [one.lower() for one in dict.fromkeys(columns)], sql
    for sql in WRONG:
        with pytest.raises(AnalysisException):
            tables.sql(sql)
        assert [one.severity for one in check_query(sql, TABLES)] == ["error"], sql
