# ruff: noqa: E501 - a query reads best in one piece
"""`lode plan` finds what a run would stop on, without Java: file, line, the nearest name, exit code 2."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from lodestream.cli.main import run_command
from lodestream.config import load_config
from lodestream.engine import make_plan, open_project
from lodestream.pipeline import Finding
from lodestream.starter import write_project

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
from lodestream import Debezium, Files, Json, Kafka, Pipeline

shop = Pipeline("shop")
shop.bronze("raw", Kafka("orders"))


@shop.silver(decode=Json(), contract="order.yaml")
def orders(raw):
    return raw
"""


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "order.yaml").write_text(CONTRACT)
        (root / "pipeline.py").write_text(PIPELINE)

    def add(self, text: str, base: str = PIPELINE) -> Project:
        (self.root / "pipeline.py").write_text(base + "\n\n" + dedent(text))
        return self

    def query(self, sql: str, **options: Any) -> Project:
        (self.root / "gold.sql").write_text(sql)
        given = "".join(f", {key}={value!r}" for key, value in options.items())
        return self.add(f'shop.gold("daily", sql="gold.sql", owner="me"{given})\n')

    def errors(self) -> list[Finding]:
        plan = make_plan(open_project(load_config(self.root)))
        return [one for one in plan.findings if one.severity == "error"]

    def error(self) -> Finding:
        (found,) = self.errors()
        assert Path(found.location.file).is_file()
        return found

    def line(self, found: Finding) -> str:
        return Path(found.location.file).read_text().splitlines()[found.location.line - 1]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize(
    ("sql", "line", "what", "fix"),
    [
        ("SELECT\n  stat,\n  count(*) AS n\nFROM silver.orders\nGROUP BY stat", 2, "stat is no column", "status?"),
        ("SELECT o.order_id AS i\nFROM silver.orders o\nWHERE o.stat = 'x'", 3, "o.stat is no column", "status?"),
        ("WITH a AS (SELECT status AS s FROM silver.orders)\nSELECT a.state AS t FROM a", 2, "a.state is no col", ""),
        ("SELECT status, -- why\n coun(*) AS n FROM silver.orders GROUP BY status", 2, "no function coun", "count?"),
        ("SELECT lenght(status) AS l FROM silver.orders", 1, "no function lenght", "length?"),
        ("SELECT status,\n\nsum(tags) AS n FROM silver.orders GROUP BY status", 3, "adds up array<string>", "size(tags)"),
        ("SELECT t.s AS s, sum(t.p) AS n FROM (SELECT status AS s, paid AS p FROM silver.orders) t GROUP BY t.s", 1,
         "sum(t.p) adds up boolean", "count_if(t.p)"),
        ("SELECT status,\norder_id, count(*) AS n\nFROM silver.orders GROUP BY status", 2, "order_id is neither grouped",
         "add order_id to GROUP BY"),
        ("SELECT status, max(amount) AS m FROM silver.orders", 1, "status is neither grouped", "add GROUP BY status"),
        ("SELECT order_id AS a, status AS A FROM silver.orders", 1, "cannot be kept", "another name"),
    ],
)  # fmt: skip
def test_a_wrong_gold_query(project: Project, sql: str, line: int, what: str, fix: str) -> None:
    found = project.query(sql).error()
    assert found.location.file == str(project.root / "gold.sql")
    assert (found.location.line, what in found.message, fix in found.fix) == (line, True, True), str(found)


def test_every_mistake_is_told_at_once_as_text_and_as_json(project: Project, capfd: Any) -> None:
    project.query("SELECT stat, coun(*) AS n\nFROM silver.orders\nGROUP BY stats")
    assert run_command(["--project", str(project.root), "plan"]) == 2
    shown = capfd.readouterr().out
    assert f"{project.root / 'gold.sql'}:1: gold.daily: stat is no column of silver.orders" in shown
    assert run_command(["--project", str(project.root), "plan", "--json"]) == 2
    found = [one for one in json.loads(capfd.readouterr().out)["findings"] if one["severity"] == "error"]
    assert [(one["location"]["line"], one["fix"]) for one in found] == [
        (1, "did you mean status?"),
        (1, "did you mean count?"),
        (3, "did you mean status?"),
    ]
    assert not (project.root / ".lode").exists()


def test_a_query_that_stands_in_python_is_told_at_its_declaration(project: Project) -> None:
    project.add('''
        shop.gold("daily", owner="me", sql="""
          SELECT count(*) AS n
          FROM silver.orders WHERE stat = 'x'
        """)
    ''')
    found = project.error()
    assert "(line 3 of the query)" in found.message
    assert 'shop.gold("daily"' in project.line(found)


def test_the_columns_of_gold_without_a_contract_come_from_its_query(project: Project) -> None:
    project.query("SELECT status, count(*) AS orders FROM silver.orders GROUP BY status")
    text = (project.root / "pipeline.py").read_text()
    more = 'shop.gold("top", sql="SELECT status, order AS n FROM gold.daily", owner="me")\n'
    found = project.add(more, base=text).error()
    assert "order is no column of gold.daily" in found.message
    assert found.fix == "did you mean orders?"


def test_the_columns_of_a_plain_function_come_from_its_text(project: Project) -> None:
    project.add("""
        @shop.silver(owner="me")
        def dated(orders):
            day = "x"
            return orders.withColumn("day", day).withColumnRenamed("status", "state").drop("tags")

        shop.gold("daily", owner="me", sql="SELECT day, stat, count(tags) AS n FROM silver.dated GROUP BY day, stat")
    """)
    assert [(one.message, one.fix) for one in project.errors()] == [
        ("gold.daily: stat is no column of silver.dated", "did you mean state?"),
        ("gold.daily: tags is no column of silver.dated", "name a column that it has"),
    ]


SILVER = (
    '@shop.silver(decode=Json("id bigint, state string, seen timestamp"), {options})\ndef seen(raw):\n    return raw\n'
)


@pytest.mark.parametrize(
    ("options", "said", "fix"),
    [
        ('keys="ids"', 'keys names "ids"', "did you mean id?"),
        ('keys="id", sequence_by="sen"', 'sequence_by names "sen"', "did you mean seen?"),
        ('partition_by="days(see)"', 'partition_by names "see"', "did you mean seen?"),
        ('filters={"known": "stat IS NOT NULL"}', "stat is no column", "did you mean state?"),
        ('expect={"known": "lenght(state) > 1"}', "no function lenght", "did you mean length?"),
        ('keys="id", delete_when="stat = 1"', "delete_when: stat is no column", "did you mean state?"),
    ],
)
def test_an_option_that_names_a_column_wrongly(project: Project, options: str, said: str, fix: str) -> None:
    found = project.add(SILVER.format(options=options)).error()
    assert (said in found.message, found.fix) == (True, fix), str(found)
    assert "shop.silver" in project.line(found)
    assert found.location.file.endswith("pipeline.py")


def test_keys_that_the_contract_does_not_have(project: Project) -> None:
    found = project.add(PIPELINE.replace('"order.yaml"', '"order.yaml", keys="orderid"'), base="").error()
    assert found.fix == "did you mean order_id?"


def test_partitions_and_keys_of_gold_are_columns_of_its_query(project: Project) -> None:
    sql = "SELECT cast(ordered_at AS date) AS day, count(*) AS n FROM silver.orders GROUP BY 1"
    assert project.query(sql, partition_by="day", keys="day").errors() == []
    assert project.query(sql, partition_by="dy").error().fix == "did you mean day?"
    assert project.query(sql, keys=["days"]).error().fix == "did you mean day?"


def test_a_type_that_a_decoder_cannot_read(project: Project) -> None:
    found = project.add('@shop.silver(decode=Json("id strng"), owner="me")\ndef seen(raw):\n    return raw\n').error()
    assert "'id strng' cannot be decoded to" in found.message
    assert (found.why, found.fix) == ("'strng' is not a Spark type", "did you mean string?")
    assert "Json" in project.line(found)


def test_a_decoder_without_a_schema(project: Project) -> None:
    found = project.add('@shop.silver(decode=Json(), owner="me")\ndef seen(raw):\n    return raw\n').error()
    assert "the decoder has no schema" in found.message


def test_a_type_in_the_schema_of_reference_data(project: Project) -> None:
    (project.root / "zones.csv").write_text("id,name\n1,a\n")
    assert project.add('shop.reference("zones", "zones.csv", schema="id int, name string", keys="id")').errors() == []
    found = project.add('shop.reference("zones", "zones.csv", schema="id int, name strin", keys="id")').error()
    assert found.fix == "did you mean string?"
    found = project.add('shop.reference("zones", "zones.csv", keys="idd")').error()
    assert (found.message.endswith('keys names "idd", which it does not have'), found.fix) == (True, "did you mean id?")


def test_a_missing_decode(project: Project) -> None:
    (found,) = project.add(PIPELINE.replace("decode=Json(), ", ""), base="").errors()
    assert "nothing gives its required column order_id" in found.message
    assert "decode=Json()" in found.fix
    query = 'shop.silver("seen", sql="SELECT id, value FROM bronze.raw", owner="me")\n'
    found = project.add(query).error()
    assert ("id is no column of bronze.raw" in found.message, "decode=Json(" in found.fix) == (True, True)


def test_a_required_column_that_nothing_gives(project: Project) -> None:
    named = PIPELINE.replace("decode=Json()", 'decode=Json("orderid bigint, status string")')
    found = project.add(named, base="").error()
    assert (found.message, found.fix) == (
        "silver.orders: nothing gives its required column order_id",
        "did you mean orderid?",
    )


def test_rows_that_the_accounting_would_miss(project: Project) -> None:
    (project.root / "paid.sql").write_text("SELECT *\nFROM silver.orders\nWHERE paid\n")
    found = project.add('shop.silver("paid", sql="paid.sql", owner="me")\n').error()
    assert (found.location.file, found.location.line) == (str(project.root / "paid.sql"), 3)
    assert "filters=" in found.fix
    found = project.add("""
        @shop.silver(owner="me")
        def paid(orders):
            known = orders.withColumn("x", "y")
            return known.where("paid")
    """).error()
    assert 'return known.where("paid")' in project.line(found)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM silver.orders WHERE true",
        "SELECT * FROM silver.orders WHERE paid UNION ALL SELECT * FROM silver.orders WHERE NOT paid",
        "SELECT order_id, t FROM silver.orders LATERAL VIEW OUTER explode(tags) x AS t WHERE t <> 'a' OR t IS NULL",
        "SELECT o.*, z.x FROM silver.orders o LEFT JOIN (SELECT 1 AS x) z ON true WHERE z.x = 1",
    ],
)
def test_a_where_that_may_drop_nothing_passes(project: Project, query: str) -> None:
    assert project.add(f'shop.silver("some", sql="{query}", owner="me")\n').errors() == []


def test_a_where_over_a_keyed_table_passes(project: Project) -> None:
    keyed = PIPELINE.replace('"order.yaml"', '"order.yaml", sequence_by="ordered_at"')
    assert project.add('shop.silver("paid", sql="SELECT * FROM silver.orders WHERE paid")\n', base=keyed).errors() == []


def test_a_gold_query_that_does_not_give_what_its_contract_promises(project: Project) -> None:
    text = (
        CONTRACT.split("      - {name: status")[0]
        .replace("order_id", "orders")
        .replace("primaryKey: true", "unique: false")
    )
    (project.root / "promise.yaml").write_text(text)
    sql = "SELECT count(*) AS order FROM silver.orders"
    assert [one.message for one in project.query(sql, contract="promise.yaml").errors()] == [
        "gold.daily: the query gives no column orders",
        "gold.daily: the query gives order, which is not promised",
    ]


def test_a_silver_table_that_cannot_be_kept_as_declared(project: Project) -> None:
    keyed = PIPELINE.replace('"order.yaml"', '"order.yaml", sequence_by="ordered_at"')
    found = project.add("""
        @shop.silver(keys="status")
        def by_status(orders):
            return orders
    """, base=keyed).errors()  # fmt: skip
    assert any("cannot be kept as declared" in one.message for one in found)


def test_a_refused_strategy_and_an_unknown_function_that_may_be_ones_own(project: Project) -> None:
    sql = "SELECT status, my_total(amount) AS t FROM silver.orders GROUP BY status"
    assert project.query(sql).errors() == []
    plan = make_plan(open_project(load_config(project.root)))
    assert ["lode plan --deep" in one.fix for one in plan.findings] == [True]
    assert "asks for strategy 'delta'" in project.query(sql, strategy="delta").error().message


def test_a_near_miss_is_a_warning_where_spark_has_functions_of_others(project: Project) -> None:
    project.query("SELECT coun(*) AS n FROM silver.orders")
    (project.root / "lode.toml").write_text('[profiles.local.spark.conf]\n"spark.sql.extensions" = "my.Functions"\n')
    assert project.errors() == []


@pytest.mark.parametrize("corrections", ["", "1"])
@pytest.mark.parametrize("example", ["nyc_taxi", "orders"])
def test_the_examples_have_no_findings(tmp_path: Path, monkeypatch: Any, example: str, corrections: str) -> None:
    monkeypatch.setenv("TAXI_CORRECTIONS", corrections)
    shutil.copytree(EXAMPLES / example, tmp_path / example)
    assert make_plan(open_project(load_config(tmp_path / example))).findings == ()


def test_a_misspelt_column_of_an_example_is_found(tmp_path: Path) -> None:
    """The examples are quiet because they are right, not because nothing is known of them."""
    shutil.copytree(EXAMPLES / "nyc_taxi", tmp_path / "taxi")
    for file, old, new in (
        ("daily_summary.sql", "sum(tip_amount)", "sum(tip_amont)"),
        ("mart_hourly_demand.sql", "count(DISTINCT pickup_date)", "count(DISTINCT pickup_dat)"),
    ):
        query = tmp_path / "taxi" / "gold" / file
        query.write_text(query.read_text().replace(old, new))
    found = make_plan(open_project(load_config(tmp_path / "taxi"))).findings
    assert sorted(one.fix for one in found) == ["did you mean pickup_date?", "did you mean tip_amount?"]


def test_the_starter_has_no_findings(tmp_path: Path) -> None:
    write_project(tmp_path / "shop")
    assert make_plan(open_project(load_config(tmp_path / "shop"))).findings == ()
