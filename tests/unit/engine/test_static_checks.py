# ruff: noqa: E501 - a query reads best in one piece
"""`lode plan` finds what a run would stop on, without Java: file, line, the nearest name, exit code 2."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from lodestream.cli.main import run_command
from lodestream.config import load_config
from lodestream.engine.blame import _explained, blamed
from lodestream.errors import DeclarationError
from lodestream.pipeline import Finding
from lodestream.pipeline.query_check import check_query, result_columns
from lodestream.planning.plan import make_plan
from lodestream.planning.project import open_project, open_sound
from lodestream.starter import write_project

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "gold_queries"))

from query_check import case_of
from query_regressions import CLOCKS, REGRESSIONS, SPARK_ONLY
from query_tables import INFOS

from shop_texts import CONTRACT, PIPELINE, RIGHT, TABLES, WRONG

EXAMPLES = Path(__file__).parents[3] / "examples"


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
        plan = make_plan(open_sound(load_config(self.root)))
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
        ("SELECT status, sum(amount > 3) AS n FROM silver.orders GROUP BY status", 1, "adds up boolean", "count_if("),
        ("SELECT status, avg(split(status, ',')) AS n FROM silver.orders GROUP BY status", 1, "adds up array", "size("),
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


def test_what_spark_takes_has_no_finding_and_what_it_refuses_has_one() -> None:
    """The Spark tier asks Spark about the same queries."""
    assert {sql: found for sql in RIGHT if (found := check_query(sql, TABLES))} == {}
    assert [sql for sql in WRONG if [one.severity for one in check_query(sql, TABLES)] != ["error"]] == []


@pytest.mark.parametrize(
    ("sql", "what", "why", "fix"),
    [
        ("SELECT x.name FROM silver.zones y", "x.name names x", "the query reads silver.zones as y", "did you mean y.name?"),
        ("SELECT x.* FROM silver.zones", "x.* names x", "the query reads silver.zones", "did you mean zones.*?"),
        ("SELECT zone, name FROM silver.zones GROUP BY 5", "GROUP BY 5 means no column", "which has 2 columns", "from 1 to 2"),
        ("SELECT zone FROM silver.zones HAVING name > 'a'", "HAVING without GROUP BY", "makes one of all rows", "WHERE"),
        ("SELECT avrage(zone) AS a FROM silver.zones", "no function avrage", "no function of that name", "did you mean avg?"),
        ("SELECT a.zone FROM silver.zones a JOIN silver.zones b\nUSING (zon)", "USING (zon) names no column of silver.zones",
         "its columns are name, zone", "did you mean zone?"),
        ("SELECT zone,,\nname FROM silver.zones", "nothing before the comma in `,,`", "cannot read", "line 1"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_query_helps(sql: str, what: str, why: str, fix: str) -> None:
    (found,) = check_query(sql, TABLES)
    assert (found.severity, what in found.what, why in found.why, fix in found.fix) == ("error", True, True, True), (
        found
    )


def test_a_text_that_only_spark_may_read_is_a_warning_that_asks_for_spark() -> None:
    (found,) = check_query("SELECT zone FROM silver.zones\nWHERE AND name > 'a'", TABLES)
    assert (found.severity, found.line, "lode plan --deep" in found.fix) == ("warning", 2, True), found


def test_no_valid_query_that_the_gold_tests_know_has_a_finding() -> None:
    tables = {name: info.columns for name, info in INFOS.items()}
    queries = [case_of(11, number).sql for number in range(400)]
    queries += [*REGRESSIONS.values(), *SPARK_ONLY.values(), *CLOCKS.values()]
    findings = {sql: found for sql in queries if (found := check_query(sql, tables))}
    assert [sql for sql, found in findings.items() if any(one.severity == "error" for one in found)] == []
    assert list(findings) == [SPARK_ONLY["a comment that goes on in the next line"]], "which Spark must be asked about"


def test_no_query_of_the_documents_has_a_finding() -> None:
    texts = [file.read_text() for file in (EXAMPLES.parent / "docs").rglob("*.md")]
    blocks = [block for text in texts for block in re.findall(r"```sql[^\n]*\n(.*?)```", text, re.DOTALL)]
    quoted = [query for text in texts for query in re.findall(r'sql="(SELECT [^"]*)"', text, re.IGNORECASE)]
    assert len(blocks) >= 3
    assert {sql: found for sql in (*blocks, *quoted) if (found := check_query(sql, {}))} == {}


def test_the_columns_of_a_query_are_told_with_the_types_that_are_certain() -> None:
    kept = "SELECT * FROM silver.zones z LEFT SEMI JOIN silver.orders o ON o.id = z.zone"
    assert result_columns(kept, TABLES) == {"zone": "int", "name": "string"}
    widened = "SELECT zone, name AS n FROM silver.zones UNION ALL SELECT id, status FROM silver.orders"
    assert result_columns(widened, TABLES) == {"zone": None, "n": "string"}


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


def test_declarations_that_cannot_be_do_not_hide_each_other_or_what_else_is_wrong(project: Project, capfd: Any) -> None:
    texts = {
        "two": "SELECT 1 AS a FROM silver.orders;\nSELECT 2 AS a FROM silver.orders",
        "empty": "",
        "writes": "INSERT INTO silver.orders SELECT 1",
        "creates": "CREATE TABLE x AS SELECT 1",
        "lost": "SELECT count(*) AS n\nFROM silver.order",
        "one": "SELECT a FROM gold.other",
        "other": "SELECT a FROM gold.one",
        "misspelt": "SELECT stat FROM silver.orders",
        "reader": "SELECT lenght(a) AS a FROM gold.two",
    }
    for name, sql in texts.items():
        (project.root / f"{name}.sql").write_text(sql)
    declared = "".join(f'shop.gold("{name}", sql="{name}.sql", owner="me")\n' for name in texts)
    project.add(declared + '\n\n@shop.gold(owner="me")\ndef keyless(orders):\n    return orders\n')
    found = {(one.table, Path(one.location.file).name, one.location.line) for one in project.errors()}
    assert {table for table, _, _ in found} >= {f"gold.{name}" for name in texts if name not in ("one", "other")}
    assert {
        ("gold.lost", "lost.sql", 2),
        ("gold.misspelt", "misspelt.sql", 1),
        ("gold.reader", "reader.sql", 1),
    } <= found
    assert all(one.table in one.message for one in project.errors())
    assert "gold.keyless" in {table for table, _, _ in found}
    (circle,) = [one for one in project.errors() if "circle" in one.message]
    assert (circle.table in ("gold.one", "gold.other"), "pipeline.py" in circle.location.file) == (True, True)
    assert run_command(["--project", str(project.root), "plan"]) == 2
    shown = capfd.readouterr().out
    assert [name for name in texts if name not in ("one", "other") and f"{name}.sql" not in shown] == []
    with pytest.raises(DeclarationError, match="7 problems in the pipeline"):
        open_project(load_config(project.root))


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


@pytest.mark.parametrize("made", ["raw", 'raw.select("*")', 'raw.withColumn("test", raw.test)', "helped(raw)"])
def test_a_condition_may_name_what_the_function_returns_and_the_contract_does_not(project: Project, made: str) -> None:
    options = 'decode=Json("order_id bigint, test boolean"), contract="order.yaml", filters={"real": "not test"}'
    text = f"""
        @shop.silver({options}, expect={{"told": "test is not null"}})
        def real(raw):
            return {made}
    """
    assert project.add(text).errors() == []
    misspelt = project.add(text.replace('"not test"', '"not tets"')).errors()
    assert [one.fix for one in misspelt] == ([] if made == "helped(raw)" else ["did you mean test?"])


def test_types_that_a_function_leaves_as_they_were_decoded_are_known(project: Project) -> None:
    silver = """
        @shop.silver(decode=Json("id bigint, tags array<int>, state string"), keys="id"{options})
        def seen(raw):
            return {made}

        shop.gold("n", owner="me", sql="SELECT state, sum(tags) AS n FROM silver.seen GROUP BY state")
    """
    assert "adds up array<int>" in project.add(silver.format(made="raw", options="")).error().message
    touched = 'raw.withColumn("tags", col("id"))'
    assert project.add(silver.format(made=touched, options="")).errors() == []
    found = project.add(silver.format(made="raw", options=', partition_by="days(state)"')).errors()
    assert any("days" in one.message for one in found)


def test_a_strategy_is_refused_over_a_table_that_only_its_decoder_describes(project: Project) -> None:
    found = project.add("""
        @shop.silver(decode=Json("id bigint, state string"), keys="id")
        def seen(raw):
            return raw

        shop.gold("most", owner="me", strategy="delta", sql="SELECT state, max(id) AS m FROM silver.seen GROUP BY state")
    """).error()
    assert "cannot be proven" in found.message


@pytest.mark.parametrize(
    ("options", "made", "fix"),
    [
        ('keys="order_id"', 'raw.select("order_id", "amount")', "decode="),
        (
            'decode=Json("id bigint, state string"), keys="id"',
            'raw.select("id", "stat", "_lode")',
            "did you mean state?",
        ),
        ('decode=Json("id bigint"), keys="id"', 'raw.withColumn("n", raw.id).select("ID", "n", "_lode")', None),
    ],
)
def test_a_function_that_selects_what_its_input_does_not_have(
    project: Project, options: str, made: str, fix: str | None
) -> None:
    found = project.add(f"""
        @shop.silver({options})
        def seen(raw):
            return {made}
    """).errors()
    told = [one for one in found if "its function selects" in one.message]
    assert [fix in one.fix for one in told] == ([True] if fix else []), found


def test_the_columns_of_versions_are_known(project: Project) -> None:
    (project.root / "rates.csv").write_text("currency,rate,since\n")
    sql = "SELECT o.order_id AS id FROM silver.orders o JOIN silver.rates r ON o.ordered_at >= r.valid_from"
    project.add(f"""
        shop.reference("rates", "rates.csv", keys="currency", history=True, sequence_by="since",
                       schema="currency string, rate decimal(9,4), since date")
        shop.gold("paid", owner="me", sql="{sql}")
    """)
    plan = make_plan(open_sound(load_config(project.root)))
    (paid,) = [one for one in plan.tables if one.name == "gold.paid"]
    assert "is not a column" not in str(paid)


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
    keyed = 'shop.silver("seen", sql="SELECT id FROM bronze.raw", keys="id")\n'
    assert "_lode" not in "".join(str(one) for one in project.add(keyed).errors())


@pytest.mark.parametrize("options", ['keys="id"', 'keys="id", sequence_by="seen"', 'partition_by="days(seen)"'])
@pytest.mark.parametrize("source", ['Kafka("more")', 'Files("in/*.json", format="json")'])
def test_a_missing_decode_is_what_an_option_over_raw_bytes_lacks(project: Project, source: str, options: str) -> None:
    found = project.add(f"""
        shop.bronze("more", {source})

        @shop.silver(owner="me", {options})
        def seen(more):
            return more
    """).error()
    assert "decode= is missing" in found.message
    assert ("raw bytes of bronze.more" in found.why, "decode=Json(" in found.fix) == (True, True), str(found)
    assert "did you mean" not in str(found)


FUNCTION = """
    from pyspark.sql import functions as f
    from pyspark.sql.functions import col

    DAY = "day"

    def named(rows):
        return rows

    @shop.gold(keys="{key}", owner="me")
    def daily(orders):
        return {body}
"""


@pytest.mark.parametrize(
    ("key", "body"),
    [
        ("statu", 'orders.groupBy("status").agg(f.count("*").alias("n"))'),
        ("statu", 'orders.where(col("amount") > 1).join(orders, "order_id").select("status", f.lit(1).alias("n"))'),
    ],
)
def test_keys_of_a_function_that_no_input_and_no_result_has(project: Project, key: str, body: str) -> None:
    found = project.add(FUNCTION.format(key=key, body=body)).error()
    assert (f'keys names "{key}"' in found.message, found.fix) == (True, "did you mean status?"), str(found)


@pytest.mark.parametrize(
    ("key", "body"),
    [
        ("status", 'orders.groupBy("status").agg(f.count("*").alias("n"))'),
        ("day", 'orders.withColumn("day", f.to_date("ordered_at")).groupBy("day").count()'),
        ("day", 'orders.selectExpr("date(ordered_at) AS Day")'),
        ("day", "orders.withColumns(dict(day=col('ordered_at')))"),
        ("day", "orders.withColumn(DAY, col('ordered_at'))"),
        ("statu", "named(orders)"),
        ("statu", "orders.toDF(*[one[:5] for one in orders.columns])"),
        ("statu", "orders.withColumnRenamed('status', 'sta' + 'tu')"),
        ("count", "orders.groupBy('status').count()"),
    ],
)
def test_keys_that_a_function_may_give_are_no_error(project: Project, key: str, body: str) -> None:
    assert project.add(FUNCTION.format(key=key, body=body)).errors() == []


@pytest.mark.parametrize(
    ("partition", "kind"), [("days(id)", "bigint"), ("hours(day)", "date"), ("truncate(3, seen)", "timestamp")]
)
def test_a_partition_that_its_type_does_not_have(project: Project, partition: str, kind: str) -> None:
    query = 'shop.silver("seen", sql="SELECT * FROM bronze.raw", decode=Json("id bigint, seen timestamp, day date"), partition_by="{}", owner="me")\n'
    found = project.add(query.format(partition)).error()
    assert (f"partition_by cannot be {partition}" in found.message, kind in found.why) == (True, True), str(found)
    for right in ("days(day)", "hours(seen)", "truncate(3, id)", "bucket(4, seen)", "months(seen)", "id"):
        assert project.add(query.format(right)).errors() == []


@pytest.mark.parametrize(
    ("schema", "why", "fix"),
    [
        ("id string, ID int", "id and ID are one name", "take one of them out"),
        ("price decimal(40,2)", "precision is 1..38", "at most 38 digits"),
    ],
)
def test_a_schema_that_no_table_can_have(project: Project, schema: str, why: str, fix: str) -> None:
    found = project.add(f'@shop.silver(decode=Json("{schema}"), owner="me")\ndef seen(raw):\n    return raw\n').error()
    assert (why in found.why, fix in found.fix) == (True, True), str(found)


def test_a_name_that_is_ours_is_told_at_its_line_once(project: Project) -> None:
    found = project.query("SELECT status,\n  count(*) AS _weight\nFROM silver.orders GROUP BY status").error()
    assert (found.location.file, found.location.line) == (str(project.root / "gold.sql"), 2)
    assert found.message == "gold.daily cannot have a column _weight"


def test_what_spark_refuses_of_a_query_stands_where_it_is_told_without_spark(project: Project) -> None:
    """So that `--deep` does not tell it twice."""
    project.query("SELECT order_id AS a, status AS A FROM silver.orders")
    opened = open_project(load_config(project.root))
    (told,) = project.errors()
    error = DeclarationError("a Gold query gives two columns a", why="of one name")
    assert blamed(opened.graph["gold.daily"], error).location == told.location


def test_a_column_of_having_that_spark_does_not_find_is_told_as_such() -> None:
    sql = "SELECT status, count(*) AS n FROM silver.orders GROUP BY status HAVING amount > 1"
    facts = {"objectName": "`amount`", "proposal": "`n`, `status`"}
    what, why, fix = _explained("UNRESOLVED_COLUMN.WITH_SUGGESTION", facts, "", sql)
    assert (what, why) == ("HAVING names amount, which is no column of the groups", "they have n, status")
    assert "max(amount)" in fix
    assert "is no column of its inputs" in _explained("UNRESOLVED_COLUMN.WITH_SUGGESTION", facts, "", "SELECT 1")[0]


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


@pytest.mark.parametrize(
    ("query", "said", "fix"),
    [
        ("SELECT DISTINCT order_id\nFROM silver.orders", "SELECT DISTINCT in a Silver query", "keys="),
        ("WITH a AS (SELECT DISTINCT order_id FROM silver.orders) SELECT order_id FROM a", "SELECT DISTINCT", "keys="),
        ("SELECT order_id FROM (SELECT DISTINCT order_id FROM silver.orders)", "SELECT DISTINCT", "keys="),
        ("SELECT order_id FROM silver.orders\nLIMIT 3", "LIMIT in a Silver query", "filters="),
        ("SELECT order_id FROM silver.orders UNION SELECT order_id FROM silver.orders", "UNION in a Silver", "UNION ALL"),
        ("SELECT status FROM silver.orders GROUP BY status", "silver.some aggregates", "Gold"),
    ],
)  # fmt: skip
def test_rows_of_a_batch_that_are_taken_together(project: Project, query: str, said: str, fix: str) -> None:
    (project.root / "some.sql").write_text(query)
    found = project.add('shop.silver("some", sql="some.sql", owner="me")\n').error()
    assert (said in found.message, fix in found.fix) == (True, True), str(found)
    assert found.location.file == str(project.root / "some.sql")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT o.* FROM silver.orders o LEFT JOIN (SELECT DISTINCT id FROM silver.zones LIMIT 3) z ON z.id = o.order_id",
        "WITH z AS (SELECT DISTINCT id FROM silver.zones) SELECT o.* FROM silver.orders o LEFT JOIN z ON z.id = o.order_id",
        "SELECT order_id FROM silver.orders UNION ALL SELECT order_id FROM silver.orders",
        "SELECT order_id, order_id IN (SELECT DISTINCT id FROM silver.zones) AS known FROM silver.orders",
    ],
)
def test_what_is_taken_together_of_a_lookup_passes(project: Project, query: str) -> None:
    (project.root / "zones.csv").write_text("id,name\n1,a\n")
    declared = f'shop.reference("zones", "zones.csv")\nshop.silver("some", sql="{query}", owner="me")\n'
    assert project.add(declared).errors() == []


@pytest.mark.parametrize("call", ["distinct()", 'dropDuplicates(["order_id"])', "limit(3)"])
def test_a_function_that_takes_the_rows_of_a_batch_together(project: Project, call: str) -> None:
    found = project.add(f"""
        @shop.silver(owner="me")
        def some(orders):
            known = orders.withColumn("x", "y")
            return known.{call}
    """).error()
    assert "return known." in project.line(found)
    assert ("keys=" if "limit" not in call else "filters=") in found.fix


def test_a_where_passes_where_an_event_may_give_no_row(project: Project) -> None:
    some = 'shop.silver("some", sql="SELECT * FROM silver.orders WHERE paid", owner="me", allow_no_rows=True)\n'
    assert project.add(some).errors() == []


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


def test_a_near_miss_is_a_warning_where_the_project_registers_functions(project: Project) -> None:
    assert "did you mean avg?" in project.query("SELECT avrage(amount) AS a FROM silver.orders").error().fix
    (project.root / "own.py").write_text("def prepare(spark):\n    spark.udf.register('avrage', lambda x: x)\n")
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
