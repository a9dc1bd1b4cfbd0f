# ruff: noqa: E501 - a query reads best in one piece
"""Keys that Python or SQL shows as others than they are, and queries in forms that only Spark knows: Gold equals them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from gold_line import Gold, Silver, declared
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from lodestream import Json, Kafka, Pipeline
from lodestream.errors import DeclarationError
from lodestream.flows.gold.equivalence import judge
from lodestream.pipeline.gold import InputInfo, analyse, locality, query_inputs
from lodestream.recovery.verify.compare import Comparison, Sampling
from lodestream.tables.lake import Lake as Tables
from lodestream.testing import Sandbox

TRIPS = InputInfo(
    "silver.t",
    {"id": "int", "zone": "int", "cat": "string", "qty": "int", "dbl": "double", "flt": "float", "day": "date"},
    keys=("id",),
)
# Bytes that are no UTF-8: Python shows both as the same two characters.
BROKEN, OTHER = "cast(X'FF41' AS string)", "cast(X'FE41' AS string)"
FAR, LONG_AGO = "date'20224-01-01'", "date'-0044-03-15'"
IN_TIME: list[list[tuple[str, ...]]] = [
    [
        ("1", "1", BROKEN, "1", "0.0D", "0.0F", "date'2024-01-01'"),
        ("2", "1", OTHER, "2", "-0.0D", "-0.0F", FAR),
        ("3", "1", BROKEN, "3", "1.5D", "1.5F", LONG_AGO),
        ("4", "2", "'a'", "4", "0.0D", "0.0F", FAR),
    ],
    [
        ("1", "1", BROKEN, "1", "0.0D", "0.0F", "date'2024-01-01'"),
        ("2", "1", OTHER, "9", "-0.0D", "-0.0F", FAR),
        ("3", "1", BROKEN, "8", "1.5D", "1.5F", LONG_AGO),
        ("4", "2", "'a'", "4", "0.0D", "0.0F", FAR),
    ],
    [
        ("1", "1", "'a'", "1", "0.0D", "0.0F", LONG_AGO),
        ("3", "1", BROKEN, "8", "-0.0D", "-0.0F", LONG_AGO),
        ("4", "2", OTHER, "4", "-0.0D", "-0.0F", "NULL"),
    ],
]
TEXTS = {
    "groups": "SELECT cat, max(qty) AS m FROM silver.t GROUP BY cat",
    "windows": "SELECT cat, id, row_number() OVER (PARTITION BY cat ORDER BY id) AS r FROM silver.t",
    "two keys": "SELECT zone, cat, max(qty) AS m FROM silver.t GROUP BY zone, cat",
    "large sums": "SELECT cat, count(*) AS n FROM silver.t GROUP BY cat",
}
ZEROS = {
    "a text of the key": "SELECT cast(dbl AS string) AS s, max(qty) AS m FROM silver.t GROUP BY dbl",
    "a text beside the key": "SELECT dbl, cast(dbl AS string) AS s, max(qty) AS m FROM silver.t GROUP BY dbl",
    "partitions": "SELECT cast(dbl AS string) AS s, count(*) OVER (PARTITION BY dbl) AS c FROM silver.t",
    "two partitions": "SELECT zone, cast(dbl AS string) AS s, row_number() OVER (PARTITION BY zone, dbl ORDER BY id) AS r FROM silver.t",
    "distinct below": "SELECT cast(x AS string) AS s, q FROM (SELECT DISTINCT dbl AS x, zone AS q FROM silver.t) v",
    "in a list": "SELECT dbl, cast(a AS string) AS s, max(qty) AS m FROM (SELECT dbl, qty, array(dbl) AS a FROM silver.t) GROUP BY dbl, a",
    "large": "SELECT cast(flt AS string) AS s, sum(qty) AS m, max(id) AS i FROM silver.t GROUP BY flt",
}
DAYS = {
    "days": "SELECT day, max(qty) AS m FROM silver.t GROUP BY day",
    "large days": "SELECT day, count(*) AS n FROM silver.t GROUP BY day",
}
FORMS = {
    "a function as a table": "SELECT r.id, t.zone FROM range(4) r LEFT JOIN silver.t t ON t.id = r.id",
    "a generator as a table": "SELECT e.x, t.zone FROM explode(array(1, 2)) e(x) JOIN silver.t t ON t.id = e.x",
    "a whole table": "TABLE silver.t",
    "a union with a whole table": "SELECT id, zone, cat, qty, dbl, flt, day FROM silver.t UNION ALL (TABLE {catalog}.silver.t)",
    "the fields of structs": "SELECT inline(array(struct(zone, qty))) FROM silver.t",
    "columns of a stack": "SELECT stack(2, zone, qty, id, 1) FROM silver.t",
    "the catalog before a column": "SELECT {catalog}.silver.t.zone AS z FROM {catalog}.silver.t",
}


class Raw(Silver):
    """Rows given as SQL, since Python has no value for some of them."""

    def frame(self, rows: Sequence[tuple[str, ...]]) -> DataFrame:
        columns = self.info.columns
        casts = [", ".join(f"cast({v} AS {k})" for v, k in zip(row, columns.values(), strict=True)) for row in rows]
        return self.lake.spark.sql(f"SELECT * FROM VALUES ({'), ('.join(casts)}) AS v({', '.join(columns)})")


class Line:
    def __init__(self, lake: Any) -> None:
        self.spark, self.catalog = lake.spark, lake.config.catalog.name
        self.trips = Raw(Tables(lake.spark.newSession(), self.catalog), TRIPS)
        self.judge = lake.spark.newSession()
        self.judge.conf.set("spark.sql.session.timeZone", "UTC")
        self.judge.sql(f"USE {self.catalog}")
        self.trips.become(IN_TIME[0])

    def gold(self, name: str, sql: str | None = None, *, small: int | None = None, **given: Any) -> Gold:
        assert sql is None or query_inputs(sql) == (TRIPS.name,)
        own = {} if small is None else {"small": small}
        return Gold(self.spark, self.catalog, declared(name, sql, **given), {TRIPS.name: TRIPS.keys}, **own)

    def follow(self, tables: dict[str, tuple[Gold, str]]) -> None:
        wrong: dict[str, str] = {}
        for number, rows in enumerate(IN_TIME):
            if number:
                self.trips.become(rows)
            for name, (table, sql) in tables.items():
                table.step()
                kept, true = table.rows, self.judge.sql(sql)
                same = kept.columns == true.columns and _texts(kept) == _texts(true)
                if not same and name not in wrong:
                    wrong[name] = f"batch {number}: {_texts(kept) - _texts(true)} for {_texts(true) - _texts(kept)}"
        assert not wrong


def _texts(rows: DataFrame) -> Counter[str]:
    named = rows.toDF(*[f"c{n}" for n in range(len(rows.columns))])
    return Counter(map(str, named.select(*[f.hex(f.col(c).cast("string")) for c in named.columns]).collect()))


@pytest.fixture
def line(lake: Any) -> Line:
    return Line(lake)


@pytest.mark.timeout(900)
def test_gold_equals_its_query_by_keys_that_are_shown_as_others(line: Line) -> None:
    def longest(t: DataFrame) -> DataFrame:
        return t.groupBy("cat").agg(f.max("qty").alias("m"))

    tables: dict[str, tuple[Gold, str]] = {}
    for number, (name, sql) in enumerate({**TEXTS, **ZEROS, **DAYS}.items()):
        tables[name] = line.gold(f"k{number}", sql, small=0 if "large" in name else None), sql
    tables["by function"] = line.gold("own", function=longest, keys="cat"), TEXTS["groups"]
    line.follow(tables)
    strategies = {name: table.gold.plan.strategy for name, (table, _) in tables.items() if table.gold.plan}
    assert {strategies[name] for name in TEXTS} == {"affected", "delta"}
    assert {strategies[name] for name in DAYS} == {"affected", "delta"}
    assert strategies["a text beside the key"] == strategies["two partitions"] == "affected", "other keys find the rows"


@pytest.mark.timeout(900)
def test_forms_that_only_spark_knows_are_kept_by_full_refresh(line: Line) -> None:
    texts = {name: sql.format(catalog=line.catalog) for name, sql in FORMS.items()}
    tables = {name: (line.gold(f"f{number}", sql), sql) for number, (name, sql) in enumerate(texts.items())}
    line.follow(tables)
    assert {table.gold.plan.strategy for table, _ in tables.values() if table.gold.plan} == {"full"}
    with pytest.raises(DeclarationError, match=r"reads other\.silver\.t, a table of another catalog"):
        line.gold("elsewhere", "SELECT zone FROM other.silver.t").step()


@pytest.mark.parametrize("name", ["partitions", "a text of the key", "distinct below"])
def test_the_judge_finds_a_key_that_tells_equal_zeros_apart(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    shapes = {TRIPS.name: StructType.fromDDL(", ".join(f"{name} {kind}" for name, kind in TRIPS.columns.items()))}
    session, sql = spark.newSession(), ZEROS[name].replace("max(qty)", "max(qty + id * 100)")
    own = analyse(sql, (TRIPS,), force="full").full_sql
    assert judge(session, analyse(sql, (TRIPS,)), own, shapes).reason is None
    monkeypatch.setattr(locality, "all_alike", lambda *_: True)
    wrong = analyse(sql, (TRIPS,))
    assert "s" in wrong.affected_keys
    assert "on generated rows" in (judge(session, wrong, own, shapes).reason or "")


def test_a_sample_sees_keys_that_python_has_no_value_for(spark: SparkSession) -> None:
    def rows(changed: int) -> DataFrame:
        return spark.sql(f"SELECT * FROM VALUES ({BROKEN}, 1), ({OTHER}, {changed}), ('a', 3) AS v(k, m)")

    texts = Comparison(rows(2), rows(7), ["k"])
    texts.narrow(Sampling(10, 1))
    assert (texts.sampled, texts.differences().changed) == (3, 1)
    days = [spark.sql(f"SELECT * FROM VALUES ({FAR}, 1), ({LONG_AGO}, {m}) AS v(k, m)") for m in (2, 7)]
    found = Comparison(*days, ["k"])
    found.narrow(Sampling(10, 1))
    assert (found.sampled, found.differences().changed) == (2, 1)


CORRECTED = {
    "quotients": "SELECT id, 10 / qty AS r FROM silver.t",
    "sums": "SELECT zone, sum(cast(txt AS int)) AS s FROM silver.t GROUP BY zone",
    "kept": "SELECT zone, sum(cast(txt AS int)) AS s FROM silver.t GROUP BY zone HAVING count(*) > 0",
    "counts": "SELECT cast(txt AS int) AS k, count(*) AS n FROM silver.t GROUP BY cast(txt AS int)",
}


@pytest.fixture
def box(spark: SparkSession, tmp_path: Path) -> Iterator[Sandbox]:
    line = Pipeline("corrected")
    line.bronze("t_raw", Kafka("t"))

    @line.silver(decode=Json("id int, seq int, zone int, qty int, txt string"), keys="id", sequence_by="seq")
    def t(t_raw: DataFrame) -> DataFrame:
        return t_raw

    for name, sql in CORRECTED.items():
        line.gold(name, sql=sql)
    with Sandbox(line, tmp_path / "state") as box:
        yield box


@pytest.mark.timeout(600)
def test_a_row_that_the_query_refuses_stops_gold_only_until_it_is_corrected(box: Sandbox) -> None:
    """The feed of a keyed table brings the bad row and takes it away again, long after the table is right."""

    def given(*rows: tuple[int, int, int, int, str]) -> None:
        box.given("bronze.t_raw", [dict(zip(("id", "seq", "zone", "qty", "txt"), row, strict=True)) for row in rows])
        box.run(only=["bronze.t_raw", "silver.t"])

    given((1, 1, 1, 1, "1"), (2, 1, 2, 5, "2"))
    for name in CORRECTED:
        box.run(only=[f"gold.{name}"])
    given((5, 1, 1, 0, "x"))
    for name in CORRECTED:
        with pytest.raises(Exception, match=r"DIVIDE_BY_ZERO|CAST_INVALID_INPUT"):
            box.run(only=[f"gold.{name}"])
    given((5, 2, 1, 2, "7"))
    assert box._built()["gold.quotients"].step(1) is not None  # one row at a time, the bad one would come alone
    for name in CORRECTED:
        box.run(only=[f"gold.{name}"])
    held = {name: {tuple(row.values())[:2] for row in box.rows(f"gold.{name}")} for name in CORRECTED}
    assert held == {
        "quotients": {(1, 10.0), (2, 2.0), (5, 5.0)},
        "sums": {(1, 8), (2, 2)},
        "kept": {(1, 8), (2, 2)},
        "counts": {(1, 1), (2, 1), (7, 1)},
    }
