# ruff: noqa: E501 - a query reads best in one piece
"""`lode plan --deep`: Spark reads every function and query over empty tables, and says where each is wrong."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lodestream.config import load_config
from lodestream.engine import make_plan, open_project
from lodestream.engine.deep import ask_spark
from lodestream.engine.plan import Plan
from lodestream.pipeline import Finding
from lodestream.pipeline.query_check import check_query, result_columns

EXAMPLES = Path(__file__).parents[3] / "examples"
CONTRACT = """\
apiVersion: v3.0.2
kind: DataContract
id: order
name: order
version: 1.0.0
status: active
schema:
  - name: order
    properties:
      - {name: order_id, logicalType: integer, physicalType: bigint, required: true, primaryKey: true}
      - {name: status, logicalType: string, physicalType: string}
      - {name: amount, logicalType: number, physicalType: "decimal(12,2)"}
      - {name: paid, logicalType: boolean, physicalType: boolean}
      - {name: tags, logicalType: array, physicalType: "array<string>", items: {logicalType: string, physicalType: string}}
      - {name: ordered_at, logicalType: date, physicalType: timestamp}
"""
PIPELINE = """\
from pyspark.sql import functions as f

from lodestream import Json, Kafka, Pipeline

shop = Pipeline("shop")
shop.bronze("raw", Kafka("orders"))
KNOWN = True  # what is decided at run time can be read by Spark alone


@shop.silver(decode=Json(), contract="order.yaml")
def orders(raw):
    return raw


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
    (root / "pipeline.py").write_text(PIPELINE)
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


TABLES: Mapping[str, Mapping[str, str]] = {
    "silver.orders": {
        "id": "bigint", "status": "string", "amount": "decimal(10,2)", "tags": "array<string>", "flag": "boolean",
        "ordered_at": "timestamp", "address": "struct<city:string>", "pairs": "map<string,int>", "raw": "binary",
    },
    "silver.zones": {"zone": "int", "name": "string"},
}  # fmt: skip
RIGHT = [
    "SELECT address.city, orders.address.city c2, orders.id, tags[0] AS f, pairs['k'] AS k, pairs.k AS k2 FROM silver.orders",
    "SELECT id, item FROM silver.orders LATERAL VIEW explode(tags) t AS item",
    "SELECT id, col FROM silver.orders LATERAL VIEW explode(tags) t",
    "SELECT o.id, t.x FROM silver.orders o, LATERAL explode(o.tags) AS t(x)",
    "SELECT x FROM (SELECT explode(tags) AS x FROM silver.orders)",
    "SELECT col FROM (SELECT explode(tags) FROM silver.orders)",
    "SELECT a FROM (SELECT stack(2, id, id) AS a FROM silver.orders)",
    "SELECT k, v FROM (SELECT explode(pairs) AS (k, v) FROM silver.orders)",
    "SELECT window.start AS s, count(*) AS n FROM silver.orders GROUP BY window(ordered_at, '1 hour')",
    "SELECT session_window.start AS s, count(*) AS n FROM silver.orders GROUP BY session_window(ordered_at, '1 hour')",
    "SELECT date_trunc('day', ordered_at) AS d, sum(amount) AS s, s / 2 AS h FROM silver.orders GROUP BY d",
    "SELECT upper(status) AS u, count(*) n FROM silver.orders GROUP BY upper(status) HAVING n > 1 ORDER BY u",
    "SELECT status, sum(sum(amount)) OVER (ORDER BY status) AS r FROM silver.orders GROUP BY status",
    "SELECT timestampdiff(MINUTE, ordered_at, ordered_at) AS m, extract(YEAR FROM ordered_at) AS y, dateadd(DAY, 1, ordered_at) AS z, datediff(ordered_at, ordered_at) q FROM silver.orders",
    "SELECT transform(tags, t -> concat(t, status)) AS x, aggregate(tags, 0, (a, b) -> a + length(b)) AS y, filter(tags, (x, i) -> i > 0) z FROM silver.orders",
    "SELECT id FROM silver.orders o WHERE amount > (SELECT avg(amount) FROM silver.orders i WHERE i.status = o.status)",
    "SELECT zone FROM silver.zones UNION ALL SELECT id FROM silver.orders ORDER BY zone",
    "SELECT a FROM VALUES (1, 2) AS v(a, b)",
    "SELECT id FROM range(10)",
    "SELECT status, any(flag) AS f, some(flag) AS g, every(flag) AS h, count_if(flag) AS c, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS p, listagg(status, ',') l, first(id) fi, mode(id) m FROM silver.orders GROUP BY status",
    "SELECT status, count(*) FILTER (WHERE flag) AS n, max_by(id, amount) AS m FROM silver.orders GROUP BY ALL",
    "SELECT status, flag, count(*) AS n FROM silver.orders GROUP BY ROLLUP(status, flag)",
    "SELECT status, flag, grouping_id() AS g, count(*) AS n FROM silver.orders GROUP BY GROUPING SETS ((status), (flag))",
    "SELECT count(*) AS n, current_date AS d, current_date() AS e, now() AS f, current_user AS u FROM silver.orders",
    "SELECT id, lag(amount) OVER w AS l FROM silver.orders WINDOW w AS (PARTITION BY status ORDER BY id)",
    "SELECT mask(status, lowerChar => 'q') AS m, make_date(2024, 1, 1) AS d, try_cast(status AS INT) AS i, struct(id AS a, status) AS st, named_struct('a', id) AS ns, map('a', 1) AS mm, array(1,2) AS ar FROM silver.orders",
    "SELECT substring(status FROM 1 FOR 2) AS s, trim(BOTH 'x' FROM status) AS t, position('a' IN status) AS p, overlay(status PLACING 'a' FROM 1) AS o FROM silver.orders",
    "SELECT INTERVAL '1' DAY AS i, DATE '2024-01-01' AS d, status LIKE '%x' AS l, status RLIKE 'x' AS r FROM silver.orders",
    "SELECT CASE WHEN flag THEN 1 ELSE 0 END AS c, count(*) AS n FROM silver.orders GROUP BY CASE WHEN flag THEN 1 ELSE 0 END",
    "SELECT sum(CASE WHEN flag THEN amount END) AS s, id % 2 AS k FROM silver.orders GROUP BY id % 2",
    "SELECT `status` FROM `silver`.`orders` WHERE STATUS = 'x'",
    "SELECT s.zone FROM (SELECT zone, count(*) OVER () AS n FROM silver.zones) s WHERE s.n > 1",
    "SELECT t.a FROM (SELECT id, status FROM silver.orders) AS t(a, b)",
    "WITH t(a, b) AS (SELECT id, status FROM silver.orders) SELECT a, b FROM t",
    "SELECT o.*, z.name FROM silver.orders o LEFT JOIN silver.zones z ON z.zone = o.id",
    "SELECT id FROM silver.orders WHERE id IN (SELECT zone FROM silver.zones) AND status NOT IN ('a')",
    "SELECT (SELECT max(zone) FROM silver.zones) AS z, id FROM silver.orders",
    "SELECT count(DISTINCT id) AS n, collect_list(struct(id, amount)) AS l, sum(status) AS s FROM silver.orders",
    "SELECT z.n FROM silver.orders o JOIN LATERAL (SELECT count(*) AS n FROM silver.zones WHERE zone = o.id) z",
    "SELECT date_part('year', ordered_at) AS y, trunc(ordered_at, 'MM') AS t, to_char(amount, '999') AS c, try_divide(1, id) AS d, xxhash64(id) AS x, ifnull(status,'') AS i, nvl(status,'') n, len(status) l, left(status, 1) le, if(flag,1,2) ii FROM silver.orders",
    "SELECT id::string AS s, id <=> 1 AS e, id DIV 2 AS q, status || 'x' AS y, !flag AS z, ~id AS w FROM silver.orders",
    "SELECT * FROM (SELECT status, flag, amount FROM silver.orders) PIVOT (sum(amount) FOR flag IN (true AS yes, false AS no))",
    "SELECT status, amount AS total, total * 2 AS twice FROM silver.orders",
    "SELECT a.id FROM silver.orders a LEFT SEMI JOIN silver.zones b ON a.id = b.zone",
    "SELECT max(id) AS m FROM silver.orders HAVING count(*) > 1",
    "SELECT status, count(*) AS n FROM silver.orders GROUP BY 1",
    "SELECT id FROM silver.orders ORDER BY amount DESC LIMIT 3",
    "SELECT date_format(ordered_at, 'yyyy') AS year, count(*) AS n FROM silver.orders GROUP BY year",
]
WRONG = [
    "SELECT stat FROM silver.orders",
    "SELECT o.stat FROM silver.orders o",
    "SELECT z.status FROM silver.orders o",
    "SELECT silver.orders.stat FROM silver.orders",
    "WITH a AS (SELECT status AS s FROM silver.orders) SELECT a.status FROM a",
    "SELECT o.id FROM silver.orders o WHERE EXISTS (SELECT 1 FROM silver.zones z WHERE z.zon = o.id)",
    "SELECT id, item FROM silver.orders LATERAL VIEW explode(tag) t AS item",
    "SELECT coun(*) AS n FROM silver.orders",
    "SELECT lenght(status) AS n FROM silver.orders",
    *(f"SELECT sum({column}) AS n FROM silver.orders" for column in ("tags", "flag", "address", "pairs", "raw")),
    "SELECT status, id, count(*) AS n FROM silver.orders GROUP BY status",
    "SELECT status, count(*) AS n FROM silver.orders",
    "SELECT id, upper(status) AS s, sum(amount) AS n FROM silver.orders GROUP BY id",
]  # fmt: skip


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
