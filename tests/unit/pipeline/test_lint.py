"""The borders of the tiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lodestream import Json, Kafka, Pipeline
from lodestream.pipeline import Finding, lint


def base() -> Pipeline:
    pipeline = Pipeline("p")
    pipeline.bronze("raw", Kafka("t"))
    pipeline.silver("clean", sql="select * from bronze.raw")
    return pipeline


def found(pipeline: Pipeline, table: str) -> list[Finding]:
    return [one for one in lint(pipeline.graph()) if one.table == table]


def test_a_clean_pipeline_has_no_findings() -> None:
    pipeline = base()
    pipeline.gold("daily", sql="select count(*) n from silver.clean", owner="fleet")
    assert lint(pipeline.graph()) == []


def test_gold_reading_bronze_is_an_error_at_the_line_of_the_query(tmp_path: Path) -> None:
    query = tmp_path / "raw.sql"
    query.write_text("select count(*) n\nfrom bronze.raw\n")
    pipeline = base()
    pipeline.gold("counts", sql=query, owner="fleet")
    (finding,) = found(pipeline, "gold.counts")
    assert (finding.severity, finding.location.file, finding.location.line) == ("error", str(query), 2)
    assert "Silver" in finding.fix


def test_silver_reading_gold_is_an_error() -> None:
    pipeline = base()
    pipeline.gold("daily", sql="select count(*) n from silver.clean", owner="fleet")
    pipeline.silver("back", sql="select * from gold.daily")
    assert [one.severity for one in found(pipeline, "silver.back")] == ["error"]


def test_silver_aggregating_in_sql_is_an_error() -> None:
    pipeline = base()
    pipeline.silver("sums", sql="select a, sum(b) from silver.clean group by a")
    (finding,) = found(pipeline, "silver.sums")
    assert finding.severity == "error"
    assert "aggregates" in finding.message


def test_silver_aggregating_in_python_is_a_warning_at_its_line() -> None:
    pipeline = base()

    @pipeline.silver
    def sums(clean: Any) -> Any:
        rows = clean.where("a > 1")
        return rows.groupBy("a").count()

    (finding,) = found(pipeline, "silver.sums")
    assert (finding.severity, finding.location.file) == ("warning", __file__)
    line = Path(__file__).read_text().splitlines()[finding.location.line - 1]
    assert 'rows.groupBy("a").count()' in line


def test_a_window_in_silver_is_fine() -> None:
    pipeline = base()
    pipeline.silver("latest", sql="select *, row_number() over (partition by id order by at) n from silver.clean")
    assert found(pipeline, "silver.latest") == []


def test_bronze_transforming_is_an_error_for_each_option() -> None:
    pipeline = Pipeline("p")
    pipeline.bronze("raw", Kafka("t"), decode=Json("a int"), filters={"some": "a > 1"})  # type: ignore[call-arg]
    findings = found(pipeline, "bronze.raw")
    assert [one.severity for one in findings] == ["error", "error"]
    assert {one.message for one in findings} == {"bronze.raw transforms: decode=", "bronze.raw transforms: filters="}


def test_errors_come_before_warnings_and_read_well() -> None:
    pipeline = base()
    pipeline.silver("keyed", sql="select * from silver.clean", keys="id", delete_when="op = 'd'")
    pipeline.gold("counts", sql="select count(*) n from bronze.raw")
    findings = lint(pipeline.graph())
    severities = [one.severity for one in findings]
    assert severities == sorted(severities)
    messages = [one.message for one in findings]
    assert "silver.keyed has keys and no contract" in messages
    assert "silver.keyed has no sequence_by" in messages
    assert "gold.counts has no owner" in messages
    assert all(f"{one.location}" in str(one) and "fix: " in str(one) for one in findings)
