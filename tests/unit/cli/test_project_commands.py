"""Commands on a project that has never run: they answer, and leave nothing behind."""

from __future__ import annotations

import sqlite3

import pytest

from lodestream.config import load_config
from lodestream.observe import EventLog, FieldUnknown, FlowRetry, SchemaChange, events_folder
from lodestream.planning.project import open_project
from lodestream.starter import write_project
from some_events import published, stopped


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


DAILY = "gold/daily_revenue.sql"


def missing(project):
    (project / DAILY).unlink()


def half_saved(project):
    text = (project / DAILY).read_text()
    (project / DAILY).write_text(text[: text.index("FROM") + 4])


def of_another_project(project):
    (project / DAILY).write_text("SELECT count(*) AS n FROM silver.nowhere")


def not_text(project):
    (project / DAILY).write_bytes(b"SELECT \xff FROM silver.orders")


def without_contract(project):
    (project / "contracts" / "order.yaml").unlink()


@pytest.mark.parametrize("broken", [missing, half_saved, of_another_project, not_text, without_contract])
def test_a_file_that_cannot_be_read_now_hides_no_table_from_commands_that_only_look(lode, project, broken):
    broken(project)
    wrong = "silver.orders" if broken is without_contract else "gold.daily_revenue"
    ended = lode("--project", project, "status", "--json")
    assert ended.code == 0
    shown = {table["name"]: table["error"] for table in ended.json["tables"]}
    assert set(shown) == {"bronze.orders_raw", "silver.orders", "gold.daily_revenue"}
    assert [name for name, error in shown.items() if error] == [wrong]
    for command in (("dead", "list"), ("changes", "gold.daily_revenue"), ("changes", "bronze.orders_raw"), ("events",)):
        assert lode("--project", project, *command).code == 0, command
    for command in (("flow", "list"), ("flow", "pause", "gold.daily_revenue")):
        assert lode("--project", project, *command).err.startswith("NothingRuns"), command
    assert lode("--project", project, "run", "--once").code == 2  # before anything is started
    assert not (project / ".lode" / "events").exists()


def test_every_file_that_cannot_be_read_is_told_at_once(lode, project):
    missing(project)
    without_contract(project)
    ended = lode("--project", project, "run", "--once")
    assert 'sql="gold/daily_revenue.sql": there is no such file' in ended.err
    assert 'contract="contracts/order.yaml": there is no such file' in ended.err


def test_a_reference_file_that_is_away_is_a_finding_and_no_error_of_the_pipeline(lode, project):
    declared = (project / "pipeline.py").read_text()
    name = next(line.partition(" = Pipeline")[0] for line in declared.splitlines() if " = Pipeline(" in line)
    (project / "pipeline.py").write_text(f'{declared}\n{name}.reference("zones", "zones.csv", keys="id", owner="me")\n')
    (project / "zone.csv").write_text("id,name\n")
    ended = lode("--project", project, "plan", "--json")
    assert ended.code == 2
    (found,) = [one for one in ended.json["findings"] if one["table"] == "silver.zones"]
    assert found["message"] == 'silver.zones: path="zones.csv": there is no such file'
    assert found["fix"] == "did you mean zone.csv?"
    assert "blocks silver.zones until it is there" in found["why"]
    assert "silver.zones" in open_project(load_config(project)).graph  # as `lode run` opens it
    assert lode("--project", project, "status").code == 0
    (project / "zone.csv").rename(project / "zones.csv")
    assert lode("--project", project, "plan").code == 0


def test_events_filters_and_limits(lode, project):
    log = EventLog(events_folder(project / ".lode"), "r1")
    for number in range(5):
        rows = {"in": 10, "out": 9, "dead": 1}
        log.emit(published("silver.orders", number, rows, ms={"total": 1500.0}))
    log.emit(stopped("gold.daily_revenue", "a gap", error="SourceGap", why="gone", fix="accept it"))
    log.close()
    everything = lode("--project", project, "events", "--json").json["events"]
    assert len(everything) == 6
    flows = lode("--project", project, "events", "--name", "flow", "--json").json["events"]
    assert [event["table"] for event in flows] == ["gold.daily_revenue"]
    assert len(lode("--project", project, "events", "--last", "2", "--json").json["events"]) == 2
    text = lode("--project", project, "events").out
    assert "batch.published silver.orders batch 4: 9 rows (1 dead) in 1.50 s" in text
    assert "flow.stopped gold.daily_revenue SourceGap: a gap" in text


def test_a_keyed_batch_says_what_it_did_to_the_table(lode, project):
    log = EventLog(events_folder(project / ".lode"), "r1")
    rows = {"in": 6, "kept": 6, "out": 1, "upserted": 1, "deleted": 2, "dead": 1}
    log.emit(published("silver.orders", 4, rows, ms={"total": 500.0}))
    log.close()
    assert (
        "silver.orders batch 4: 1 row upserted, 2 deleted (1 dead) in 0.50 s"
        in lode("--project", project, "events").out
    )


def test_a_retry_says_why_which_attempt_it_was_and_when_the_next_one_comes(lode, project):
    log = EventLog(events_folder(project / ".lode"), "r1")
    strange = {
        "error": "Unexpected",
        "what": "silver.orders: an unexpected error",
        "why": "OSError: odd\nat Foo.java",
        "fix": None,
    }
    log.emit(FlowRetry("silver.orders", **strange, tries=2, most_tries=6, pause_s=0.31))
    away = {"error": "BrokerUnavailable", "what": "Kafka did not answer in time", "why": None, "fix": None}
    log.emit(FlowRetry("bronze.orders_raw", **away, tries=1, give_up_s=600.0, pause_s=0.2))
    log.close()
    first, second = (line.partition("Z ")[2] for line in lode("--project", project, "events").out.splitlines())
    assert first == (
        "flow.retry silver.orders Unexpected: an unexpected error (OSError: odd); "
        "attempt 2 of 6 failed, next try in 0.3 s"
    )
    assert second == (
        "flow.retry bronze.orders_raw BrokerUnavailable: Kafka did not answer in time; "
        "attempt 1 failed, next try in 0.2 s, for 10 min at most"
    )


def test_changes_of_a_contract_are_told_in_one_line(lode, project):
    log = EventLog(events_folder(project / ".lode"), "r1")
    steps, changes = ("add tip bigint",), ("tip: added",)
    log.emit(SchemaChange("silver.orders", contract="orders 1.1.0", steps=steps, changes=changes))
    log.emit(FieldUnknown("silver.orders", fields=("note", "tip"), rows=1200))
    log.close()
    text = lode("--project", project, "events").out
    assert "schema-change silver.orders orders 1.1.0: add tip bigint; tip: added" in text
    assert "field.unknown silver.orders note, tip in 1,200 rows" in text


def test_events_of_a_table_that_is_not_there_name_those_that_are(lode, project):
    log = EventLog(events_folder(project / ".lode"), "r1")
    log.emit(published("silver.orders"))
    log.emit(published("silver.gone"))
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


PIPELINE = """
from lodestream import Kafka, Pipeline

shop = Pipeline("shop")
shop.bronze("orders_raw", Kafka("shop.orders", "shop.returns"))
shop.bronze("clicks_raw", Kafka(pattern="clicks[.].*"))
"""


def test_events_are_sent_to_topics_that_are_read_and_to_the_projects_own_broker(lode, project):
    (project / "pipeline.py").write_text(PIPELINE)
    wrong = lode("--project", project, "broker", "send", "shop.order", "{}")
    assert wrong.code == 2
    assert "no table of this pipeline reads the topic shop.order" in wrong.err
    assert "shop.orders, shop.returns, clicks[.].*" in wrong.err
    assert "did you mean shop.orders?" in wrong.err
    for topic in ("shop.returns", "clicks.web"):
        silent = lode("--project", project, "broker", "send", topic, "{}")
        assert silent.code == 3
        assert "no broker is running" in silent.err
        assert "lode broker start" in silent.err
    assert "NAME=TEXT" in lode("--project", project, "broker", "send", "shop.returns", "{}", "--header", "x").err
    with (project / "lode.toml").open("a") as settings:
        settings.write('\n[profiles.local.kafka]\nbootstrap = "kafka.example:9092"\n')
    foreign = lode("--project", project, "broker", "send", "shop.orders", "{}")
    assert foreign.code == 2
    assert "this project's Kafka is kafka.example:9092" in foreign.err
