"""Commands on a project that has never run: they answer, and leave nothing behind."""

from __future__ import annotations

import sqlite3

import pytest

from lodestream.observe.events import EventLog, events_folder
from lodestream.starter import write_project


@pytest.fixture
def project(folder):
    write_project(folder / "shop")
    return folder / "shop"


def test_status_before_any_run_shows_every_table_without_rows(lode, project):
    shown = lode("--project", project, "status", "--json").json
    assert [(table["name"], table["rows"], table["state"]) for table in shown["tables"]] == [
        ("bronze.orders_raw", None, "idle"),
        ("silver.orders", None, "idle"),
        ("gold.daily_revenue", None, "idle"),
    ]
    assert "gold.daily_revenue" in lode("--project", project, "status").out
    assert not (project / ".lode").exists()


def test_status_while_the_first_run_makes_the_catalog(lode, project):
    (project / ".lode").mkdir()
    sqlite3.connect(project / ".lode" / "catalog.db").close()
    assert lode("--project", project, "status").code == 0


def test_status_with_a_damaged_catalog_is_transient_trouble(lode, project):
    (project / ".lode").mkdir()
    (project / ".lode" / "catalog.db").write_bytes(b"no database" * 1000)
    ended = lode("--project", project, "status")
    assert ended.code == 75
    assert ended.err.startswith("CatalogUnavailable")
    assert len(ended.err.splitlines()) == 3


def test_plan_shows_how_each_table_is_kept(lode, project):
    shown = lode("--project", project, "plan", "--json").json
    assert {table["name"]: table["strategy"] for table in shown["tables"]}["gold.daily_revenue"] == "delta"
    assert "delta" in lode("--project", project, "plan").out


def test_plan_exits_2_when_a_border_is_broken(lode, project):
    (project / "gold" / "daily_revenue.sql").write_text("SELECT count(*) AS n FROM bronze.orders_raw")
    ended = lode("--project", project, "plan")
    assert ended.code == 2
    assert "error: " in ended.out
    assert "gold.daily_revenue reads bronze.orders_raw" in ended.out
    assert "fix: " in ended.out


def test_plan_exits_2_when_a_forced_strategy_cannot_be_proven(lode, project):
    declared = (project / "pipeline.py").read_text()
    forced = declared.replace('sql="gold/daily_revenue.sql"', 'sql="gold/daily_revenue.sql", strategy="delta"')
    (project / "pipeline.py").write_text(forced)
    assert lode("--project", project, "plan").code == 0  # sums of rows: as asked
    query = "SELECT ordered_at, max(amount) AS most FROM silver.orders GROUP BY ordered_at"
    (project / "gold" / "daily_revenue.sql").write_text(query)
    ended = lode("--project", project, "plan")
    assert ended.code == 2
    assert "gold.daily_revenue asks for strategy 'delta', which cannot be proven" in ended.out
    assert "max(amount) is not a sum over its rows" in ended.out


def test_plan_starts_nothing(lode, project):
    lode("--project", project, "plan")
    assert not (project / ".lode").exists()


def test_a_mistake_in_the_pipeline_names_file_and_line(lode, project):
    (project / "pipeline.py").write_text("from lodestream import Pipeline\nx = Pipeline('x')\nx.bronze('a', 7)\n")
    ended = lode("--project", project, "plan", "--json")
    assert ended.code == 2
    assert "pipeline.py:3" in ended.json["error"]["what"]


def test_events_filters_and_limits(lode, project):
    log = EventLog(events_folder(project / ".lode"), "r1")
    for number in range(5):
        rows = {"in": 10, "out": 9, "dead": 1}
        log.emit("batch.published", "silver.orders", batch=number, rows=rows, ms={"total": 1500.0})
    log.emit("flow.stopped", "gold.daily_revenue", error="SourceGap", what="a gap", why="gone", fix="accept it")
    log.close()
    everything = lode("--project", project, "events", "--json").json["events"]
    assert len(everything) == 6
    stopped = lode("--project", project, "events", "--name", "flow", "--json").json["events"]
    assert [event["table"] for event in stopped] == ["gold.daily_revenue"]
    assert len(lode("--project", project, "events", "--last", "2", "--json").json["events"]) == 2
    text = lode("--project", project, "events").out
    assert "batch.published silver.orders batch 4: 9 rows (1 dead) in 1.50 s" in text
    assert "flow.stopped gold.daily_revenue SourceGap: a gap" in text


def test_changes_of_a_contract_are_told_in_one_line(lode, project):
    log = EventLog(events_folder(project / ".lode"), "r1")
    log.emit(
        "schema-change", "silver.orders", contract="orders 1.1.0", steps=["add tip bigint"], changes=["tip: added"]
    )
    log.emit("field.unknown", "silver.orders", fields=["note", "tip"], rows=1200)
    log.close()
    text = lode("--project", project, "events").out
    assert "schema-change silver.orders orders 1.1.0: add tip bigint; tip: added" in text
    assert "field.unknown silver.orders note, tip in 1,200 rows" in text


def test_events_of_a_table_that_is_not_there_name_those_that_are(lode, project):
    log = EventLog(events_folder(project / ".lode"), "r1")
    log.emit("batch.published", "silver.orders", batch=1, rows={"out": 1}, ms={"total": 1.0})
    log.emit("batch.published", "silver.gone", batch=1, rows={"out": 1}, ms={"total": 1.0})
    log.close()
    ended = lode("--project", project, "events", "--table", "silver.oders")
    assert ended.code == 2
    assert 'there is no table "silver.oders"' in ended.err
    assert "the nearest name first: silver.orders, " in ended.err
    assert "gold.daily_revenue" in ended.err
    assert "silver.gone" in ended.err
    assert "did you mean silver.orders?" in ended.err
    for name in ("orders", "silver.orders", "silver.gone"):
        assert len(lode("--project", project, "events", "--table", name, "--json").json["events"]) == 1
    quiet = lode("--project", project, "events", "--table", "daily_revenue")
    assert (quiet.code, quiet.out) == (0, "")
    assert "no events of gold.daily_revenue" in quiet.err
    (project / "pipeline.py").write_text("this is no Python\n")
    assert lode("--project", project, "events", "--table", "gone").code == 0


def test_events_without_any_say_so(lode, project):
    ended = lode("--project", project, "events")
    assert (ended.code, ended.out) == (0, "")
    assert "no events" in ended.err
