"""What a Gold table does when its query changes, a process dies, a promise breaks, or its inputs are not level."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from gold_line import Gold, Silver, declared
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lodestream import failpoints, windows
from lodestream.config import load_config
from lodestream.contracts import Contract, Field
from lodestream.contracts.model import rule
from lodestream.engine.failures import Backoff
from lodestream.engine.runner import Runner
from lodestream.engine.sizing import Sizer
from lodestream.errors import (
    AuditFailed,
    CatalogUnavailable,
    ContractViolation,
    DeclarationError,
    NotOurTable,
    UserCodeError,
)
from lodestream.flows.agreement import Agreement
from lodestream.observe import Event, EventLog
from lodestream.pipeline import Table
from lodestream.pipeline.gold import InputInfo
from lodestream.pipeline.ways import Ways
from lodestream.planning.project import open_project
from lodestream.serving.declared import sinks_of
from lodestream.serving.deliver import Deliverer
from lodestream.serving.feed import TableFeed
from lodestream.tables import reshape
from lodestream.tables.inspect import Inspector
from lodestream.tables.lake import Lake as Tables
from lodestream.tables.sink_positions import SinkPositions

EVENTS = InputInfo("silver.events", {"id": "int", "k": "string", "x": "decimal(8,2)", "at": "timestamp_ntz"})
START = "2024-01-01 00:"


class Killed(BaseException):
    """The process is gone."""


class Line:
    def __init__(self, lake: Any) -> None:
        self.spark, self.catalog, self.config = lake.spark, lake.config.catalog.name, lake.config
        self.tables = Tables(lake.spark.newSession(), self.catalog)
        self.events = Silver(self.tables, EVENTS)

    def gold(self, name: str, sql: str | None, *, inputs: tuple[str, ...] = (EVENTS.name,), **given: Any) -> Gold:
        own = {key: given.pop(key) for key in ("contract", "agreement", "small", "appended") if key in given}
        if callable(own.get("agreement")):
            own["agreement"] = own["agreement"]()
        table = declared(name, sql, **given)
        return Gold(self.spark, self.catalog, table, dict.fromkeys(inputs, ()), **own)


@pytest.fixture
def line(lake: Any) -> Iterator[Line]:
    yield Line(lake)
    failpoints.disarm()


def event(number: int, key: str | None, value: str, minute: float = 0) -> tuple[Any, ...]:
    return (number, key, Decimal(value), f"{START}{int(minute):02d}:{int(minute % 1 * 60):02d}")


@pytest.mark.parametrize("active", ["another session", "none"])
def test_an_edited_query_gets_its_columns_whichever_session_is_active_in_the_thread(line: Line, active: str) -> None:
    """A run keeps its tables in threads that have seen other sessions, or none."""
    line.events.append([event(1, "a", "1.5")])
    line.gold("edited", f"SELECT k, count(*) AS n FROM {EVENTS.name} GROUP BY k").step()
    wider = line.gold("edited", f"SELECT k, count(*) AS n, max(x) AS top FROM {EVENTS.name} GROUP BY k")
    sessions = line.spark._jvm.org.apache.spark.sql.SparkSession  # type: ignore[union-attr]
    other = line.spark.newSession()
    failed: list[Exception] = []

    def as_a_worker_does() -> None:
        sessions.clearActiveSession()
        if active == "another session":
            sessions.setActiveSession(other._jsparkSession)
        try:
            wider.step()
        except Exception as error:
            failed.append(error)

    worker = threading.Thread(target=as_a_worker_does)
    worker.start()
    worker.join()
    assert not failed
    wider.check()


@pytest.mark.parametrize("name", ["_weight", "_lode_day"])
def test_a_function_that_returns_a_column_named_like_ours_is_refused(line: Line, name: str) -> None:
    line.events.append([event(1, "a", "1.00")])

    def totals(events: DataFrame) -> DataFrame:
        return events.groupBy("k").agg(f.count("*").alias(name))

    gold = line.gold("totals", None, function=totals, strategy="full")
    with pytest.raises(UserCodeError, match=f"returns a column {name}"):
        gold.step()


def test_a_crash_between_state_and_table_counts_nothing_twice(line: Line) -> None:
    line.events.append([event(1, "a", "1.00"), event(2, "a", "2.00"), event(3, "b", "5.00")])
    sql = "SELECT k, count(*) AS n, sum(x) AS s FROM silver.events GROUP BY k HAVING count(*) > 1"
    often = line.gold("often", sql, appended=("silver.events",))
    often.step()
    line.events.append([event(4, "b", "7.00")])
    failpoints.arm("companions.after", "gold.often", _die)
    with pytest.raises(Killed):
        often.step()
    failpoints.disarm()
    often.restart()
    often.step()
    often.check()
    assert {row.k: row.s for row in often.rows.collect()} == {"a": Decimal("3.00"), "b": Decimal("12.00")}
    assert often.flow.lake.whole("gold.often__state").count() == 2


def test_another_query_rebuilds_the_table_without_news(line: Line) -> None:
    line.events.append([event(1, "a", "1.00"), event(2, None, "2.00")])
    first = line.gold("sums", "SELECT k, sum(x) AS s, count(*) AS n FROM silver.events GROUP BY k")
    first.step()
    second = line.gold("sums", "SELECT k, cast(sum(x) AS double) AS s, max(id) AS top FROM silver.events GROUP BY k")
    assert second.step() is not None
    assert second.rows.columns == ["k", "s", "top"]
    second.check()
    assert second.step() is None


EDITS = {
    "a column in the middle, one gone, one of another type": (
        "SELECT k, sum(x) AS s, count(*) AS n FROM silver.events GROUP BY k",
        "SELECT max(id) AS top, k, count_if(x > 1) AS big, cast(sum(x) AS string) AS s FROM silver.events GROUP BY k",
    ),
    "another order alone": (
        "SELECT k, sum(x) AS s, count(*) AS n FROM silver.events GROUP BY k",
        "SELECT count(*) AS n, k, sum(x) AS s FROM silver.events GROUP BY k",
    ),
    "state in a table of its own": (
        "SELECT k, count(*) AS n FROM silver.events GROUP BY k HAVING count(*) > 0",
        "SELECT sum(x) AS s, k, avg(x) AS mean, count(*) AS n FROM silver.events GROUP BY k HAVING count(*) > 0",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_readers_of_an_edited_query_see_the_old_table_or_the_new_one(line: Line, edit: str) -> None:
    line.events.append([event(1, "a", "1.00"), event(2, None, "2.00"), event(3, "a", "3.00")])
    appended = {"appended": ("silver.events",)}
    line.gold("sums", EDITS[edit][0], **appended).step()
    seen = [_read(line, "gold.sums")]
    for point in ("companions.after", "stage.before", "stage.after", "publish.before", "publish.swap"):
        failpoints.arm(point, "gold.sums", lambda: seen.append(_read(line, "gold.sums")))
    edited = line.gold("sums", EDITS[edit][1], **appended)
    with _reader(line, "gold.sums") as beside:
        assert edited.step() is not None
    new = _read(line, "gold.sums")
    assert seen == [seen[0]] * 6
    assert seen[0] != new
    assert [one for one in beside if one not in (seen[0], new)] == []
    edited.check()
    line.events.append([event(4, "b", "5.00"), event(5, "a", "5.00")])
    edited.step()
    edited.check()


def test_columns_that_an_edit_adds_are_written_in_every_session_of_the_process(line: Line) -> None:
    """Where files go that nobody has committed yet, Iceberg tells the session that is active then, and no other."""
    line.events.append([event(1, "a", "1.00"), event(2, None, "2.00")])
    sessions = line.spark._jvm.org.apache.spark.sql.SparkSession
    made = ["k", "count(*) AS n"]
    line.gold("sums", f"SELECT {', '.join(made)} FROM silver.events GROUP BY k").step()
    for more in ("sum(x) AS s", "max(id) AS top"):
        made.append(more)
        edited = line.gold("sums", f"SELECT {', '.join(made)} FROM silver.events GROUP BY k")
        session = edited.flow.lake.spark._jsparkSession
        sessions.setActiveSession(session)
        assert session.sessionState().catalogManager().catalog("default_rewrite_catalog").name()
        sessions.setActiveSession(line.spark.newSession()._jsparkSession)
        assert edited.step() is not None
        edited.check()


def test_a_table_that_was_made_elsewhere_is_adopted_and_becomes_what_its_query_says(line: Line, tmp_path: Path) -> None:
    line.events.append([event(1, "a", "1.00"), event(2, "b", "2.00")])
    line.tables.spark.sql("CREATE NAMESPACE IF NOT EXISTS gold")
    line.tables.spark.sql("CREATE TABLE gold.sums (k string, note string, s decimal(18,2)) USING iceberg")
    line.tables.spark.sql("INSERT INTO gold.sums VALUES ('z', 'by hand', 9.00)")
    gold = line.gold("sums", "SELECT k, sum(x) AS s, count(*) AS n FROM silver.events GROUP BY k")
    events = list[Event]()
    log = EventLog(tmp_path / "events", "run", events.append)

    def runner(*, adopt: bool) -> Runner:
        sizer, backoff = Sizer(1.0, 1_000), Backoff(0.1, 1.0)
        return Runner(gold.flow, depth=0, polled=None, sizer=sizer, backoff=backoff, events=log, adopt=adopt)

    refused = runner(adopt=False)
    refused.turn()
    refused.settle()
    assert (refused.state, type(refused.error)) == ("stopped", NotOurTable)
    assert {row.k for row in line.tables.whole("gold.sums").collect()} == {"z"}, "it is left as it is"
    gold.restart()
    adopting = runner(adopt=True)
    adopted, made = adopting.turn(), adopting.turn()
    log.close()
    assert adopted is not None, [one.line() for one in events]
    assert made is not None, [one.line() for one in events]
    assert "table.adopted" in {one.name for one in events}
    gold.check()
    gold.restart()
    assert gold.step() is None


def test_an_edit_that_breaks_its_contract_changes_no_column(line: Line) -> None:
    """The refused rows are there to be looked at, in their own columns."""
    line.events.append([event(1, "a", "1.00"), event(2, None, "2.00")])
    line.gold("sums", "SELECT k, sum(x) AS s FROM silver.events GROUP BY k").step()
    before = _read(line, "gold.sums")
    contract = Contract("sums", "1.0.0", (Field("top", "int"), Field("k", "string", required=True)))
    edited = line.gold("sums", "SELECT max(id) AS top, k FROM silver.events GROUP BY k", contract=contract)
    with pytest.raises(ContractViolation, match="refused 1 of 2 rows in batch 2"):
        edited.step()
    assert _read(line, "gold.sums") == before
    kept = line.tables.store("gold.sums").ref("failed_2")
    assert kept is not None
    assert {row.top for row in line.tables.whole("gold.sums", kept.id).collect()} == {1, 2}


def test_an_edit_that_meets_another_change_of_the_table_is_made_again(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ids of its new columns were chosen for the table as it was: rows under other ids would read as null."""
    line.events.append([event(1, "a", "1.00")])
    line.gold("sums", "SELECT k, sum(x) AS s FROM silver.events GROUP BY k").step()
    before = _read(line, "gold.sums")
    edited = line.gold("sums", "SELECT max(id) AS top, k FROM silver.events GROUP BY k")

    def meanwhile(*given: Any) -> list[Any]:
        monkeypatch.undo()
        files = reshape.written_files(*given)
        line.spark.sql(f"ALTER TABLE {line.catalog}.gold.sums ADD COLUMN noted string")
        line.spark.sql(f"ALTER TABLE {line.catalog}.gold.sums DROP COLUMN noted")
        return files

    monkeypatch.setattr(reshape, "written_files", meanwhile)
    with pytest.raises(CatalogUnavailable, match=r"reshaping gold\.sums"):
        edited.step()
    assert _read(line, "gold.sums") == before
    edited.step()
    edited.check()


def test_a_batch_that_breaks_its_contract_is_not_published(line: Line) -> None:
    contract = Contract(
        "sums",
        "1.2.0",
        (Field("k", "string", required=True), Field("s", "decimal(18,2)", unique=True)),
        keys=("k",),
        rules=(rule("not too much", "s < 10", "fail"), rule("some", "s > 1", "warn")),
    )
    sums = line.gold("sums", "SELECT k, sum(x) AS s FROM silver.events GROUP BY k", contract=contract)
    line.events.append([event(1, "a", "1.00"), event(2, "b", "3.00")])
    published = sums.step()
    assert published is not None
    assert published.rows["warned"] == 1
    line.events.append([event(3, "a", "20.00"), event(4, None, "3.00")])
    with pytest.raises(ContractViolation) as refused:
        sums.step()
    assert refused.value.what == "gold.sums refused 2 of 3 rows in batch 2 (67 %, limit 0 %)"
    assert refused.value.why == (
        "k is null in 1 row, 'not too much' does not hold in 1 row, s is not unique in 1 row; "
        "contract sums 1.2.0 requires it"
    )
    assert "gold.sums.branch_failed_2" in (refused.value.fix or "")
    assert {row.k for row in sums.rows.collect()} == {"a", "b"}
    assert line.spark.table(f"{line.catalog}.gold.sums.branch_failed_2").count() == 3


def test_a_key_that_is_not_unique_and_a_type_that_differs_are_refused(line: Line) -> None:
    line.events.append([event(1, "a", "1.00"), event(2, "a", "3.00")])
    contract = Contract("plain", "1.0.0", (Field("k", "string"), Field("x", "decimal(8,2)")), keys=("k",))
    with pytest.raises(ContractViolation, match="refused 1 of 2 rows"):
        line.gold("plain", "SELECT k, x FROM silver.events", contract=contract).step()
    with pytest.raises(DeclarationError) as wrong:
        line.gold("other", "SELECT k, id AS x FROM silver.events", contract=contract).step()
    assert wrong.value.why == "x is int, not decimal(8,2)"
    with pytest.raises(DeclarationError) as forced:
        line.gold("forced", "SELECT k, max(x) AS x FROM silver.events GROUP BY k", strategy="delta").step()
    assert "is not a sum" in (forced.value.why or "")


def test_a_group_cannot_hold_fewer_rows_than_none(line: Line) -> None:
    line.events.become([event(1, "a", "1.00")])
    sums = line.gold("sums", "SELECT k, sum(x) AS s FROM silver.events GROUP BY k")
    sums.step()
    line.events.become([])
    source = sums.gold.inputs[0].table
    doubled = type(source).changes
    source.changes = lambda since, to: doubled(source, since, to).unionAll(doubled(source, since, to))  # type: ignore[method-assign]
    with pytest.raises(Exception, match="lode: more rows") as caught:
        sums.step()
    assert isinstance(sums.flow.explain(caught.value), AuditFailed)
    assert sums.rows.count() == 1


def test_a_diamond_is_never_seen_half_updated(line: Line) -> None:
    """`both` reads the events and their sums; the sums are slow, so the events are read as the sums know them."""
    line.events.append([event(1, "a", "1.00")])
    slow = line.gold("slow", "SELECT k, sum(x) AS s FROM silver.events GROUP BY k", appended=("silver.events",))
    slow.step()
    line.events.append([event(2, "a", "2.00")])
    ways = Ways(("silver.events", "gold.slow"), {"gold.slow": ("silver.events",)})
    both = line.gold(
        "both",
        "SELECT e.k, e.s AS events, g.s AS sums FROM (SELECT k, sum(x) AS s FROM silver.events GROUP BY k) e "
        "JOIN gold.slow g ON g.k = e.k",
        inputs=("silver.events", "gold.slow"),
        agreement=lambda: Agreement(Tables(line.spark.newSession(), line.catalog), ways),
        appended=("silver.events",),
    )
    seen = []
    for _ in range(2):
        published = both.step()
        assert published is not None
        positions = published.positions
        made = line.tables.store("gold.slow").snapshot(positions["gold.slow"]["snapshot"])
        assert made is not None
        assert made.stamp is not None
        assert made.stamp.positions["silver.events"] == positions["silver.events"]
        seen += [(row.events, row.sums) for row in both.rows.collect()]
        assert both.step() is None  # the events are ahead, the sums are not: wait
        slow.step()
    assert seen == [(Decimal("1.00"), Decimal("1.00")), (Decimal("3.00"), Decimal("3.00"))]


def test_a_function_with_keys_recomputes_the_touched_ones(line: Line, tmp_path: Path) -> None:
    calls: list[int] = []

    def best(events: DataFrame) -> DataFrame:
        calls.append(events.count())
        return events.groupBy("k").agg(f.max("x").alias("best"), f.count("*").alias("n"))

    line.events.become([event(1, "a", "1.00"), event(2, "b", "2.00"), event(3, None, "3.00")])
    table = declared("best", function=best, keys="k", export=str(tmp_path / "out" / "best.parquet"))
    gold = Gold(line.spark, line.catalog, table, {EVENTS.name: ()})
    gold.step()
    line.events.become([event(1, "a", "1.00"), event(2, "a", "9.00"), event(4, None, "4.00")])
    calls.clear()
    gold.step()
    assert calls == [3]  # b lost its row, a and null changed
    assert {row.k: (row.best, row.n) for row in gold.rows.collect()} == {
        "a": (Decimal("9.00"), 2),
        None: (Decimal("4.00"), 1),
    }
    line.events.become([event(1, "a", "1.00"), event(2, "a", "9.00"), event(4, None, "5.00")])
    calls.clear()
    gold.step()
    assert calls == [1]
    (export,) = sinks_of(table)
    deliverer = Deliverer(TableFeed(line.config, table.name, table.name), export, SinkPositions(line.config))
    assert (deliverer.catch_up().deliveries, deliverer.catch_up().deliveries) == (1, 0)
    file = parquet.read_table(tmp_path / "out" / "best.parquet")
    assert file.schema.equals(gold.rows.toArrow().schema)
    head = Inspector(line.config).look(table.name).head()
    assert file.schema.metadata[b"lode.snapshot"] == str(head.id).encode()
    assert {row["k"]: row["best"] for row in file.to_pylist()} == {"a": Decimal("9.00"), None: Decimal("5.00")}
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["best.parquet"]


PRICED = """\
from lodestream import Kafka, Pipeline
import priced_rates

line = Pipeline("line")
line.bronze("raw", Kafka("t"))
line.silver("events", sql="SELECT * FROM bronze.raw")


@line.gold(keys="id")
def priced(events):
    return events.selectExpr("id", f"id * {priced_rates.FACTOR} AS price")
"""


def test_a_helper_edited_under_a_run_is_not_recorded_with_rows_of_the_old_one(line: Line, tmp_path: Path) -> None:
    (tmp_path / "lode.toml").touch()
    (tmp_path / "pipeline.py").write_text(PRICED)
    (tmp_path / "priced_rates.py").write_text("FACTOR = 2\n")

    def loaded() -> Table:
        sys.modules.pop("priced_rates", None)
        return open_project(load_config(tmp_path)).graph["gold.priced"]

    line.events.become([event(1, "a", "1.00")])
    gold = Gold(line.spark, line.catalog, loaded(), {EVENTS.name: ()})
    gold.step()
    (tmp_path / "priced_rates.py").write_text("FACTOR = 3  # edited\n")
    line.events.append([event(2, "b", "1.00")])
    gold.restart()  # as `lode flow restart` does: the process still has the old module
    gold.step()
    assert sorted(map(tuple, gold.rows.collect())) == [(1, 2), (2, 4)]
    anew = Gold(line.spark, line.catalog, loaded(), {EVENTS.name: ()})
    assert anew.step() is not None
    assert sorted(map(tuple, anew.rows.collect())) == [(1, 3), (2, 6)]
    sys.modules.pop("priced_rates")


WINDOWS = {
    "tumbling": "SELECT window.start AS s, count(*) AS n FROM silver.events GROUP BY window(at, '10 minutes')",
    "hopping": "SELECT k, window.start AS s, sum(x) AS x FROM silver.events "
    "GROUP BY k, window(at, '10 minutes', '5 minutes')",
    "sliding": "SELECT k, max(recent) AS most FROM (SELECT k, count(*) OVER (PARTITION BY k ORDER BY at RANGE BETWEEN "
    "INTERVAL 10 MINUTES PRECEDING AND CURRENT ROW) AS recent FROM silver.events) GROUP BY k HAVING max(recent) > 2",
    "session": "SELECT k, session_window.start AS s, session_window.end AS e, count(*) AS n FROM silver.events "
    "GROUP BY k, session_window(at, '5 minutes')",
    "global": "SELECT count(*) AS n, sum(x) AS x FROM silver.events",
}


def test_a_late_event_corrects_published_windows(line: Line) -> None:
    """At minute 6 a late event joins two sessions of `a` and makes three of it in ten minutes; then it is deleted."""
    tables = {name: line.gold(name, sql) for name, sql in WINDOWS.items()}
    apart = [event(1, "a", "1.00", 2), event(2, "a", "1.00", 10), event(3, "b", "1.00", 2)]
    late = event(4, "a", "1.00", 6)
    found = []
    for rows in (apart, [*apart, late], apart):
        line.events.become(rows)
        for table in tables.values():
            table.step()
        found.append(
            (
                tables["session"].rows.where("k = 'a'").count(),
                [row.most for row in tables["sliding"].rows.collect()],
                tables["tumbling"].rows.where(f"s = timestamp_ntz '{START}00:00'").first().n,
            )
        )
    assert found == [(2, [], 2), (1, [3], 3), (2, [], 2)]
    for table in tables.values():
        table.check()


def test_windows_in_python_are_those_of_sql(line: Line) -> None:
    line.events.become([event(n, "a", "1.00", minute) for n, minute in enumerate((0, 3, 6.5, 14, 30))])
    events = line.tables.whole("silver.events")
    assert events.groupBy(windows.tumbling("at", "10 min")).count().count() == 3
    assert events.groupBy(windows.hopping("at", "10 min", "5 min")).count().count() == 6
    assert sorted(r["count"] for r in events.groupBy("k", windows.session("at", "5 min")).count().collect()) == [
        1,
        1,
        3,
    ]
    recent = events.withColumn("n", f.count("*").over(windows.sliding("at", "10 min", by="k")))
    assert [row.n for row in recent.orderBy("at").collect()] == [1, 2, 3, 2, 1]
    assert {row.n for row in events.withColumn("n", f.count("*").over(windows.overall("k"))).collect()} == {5}


def _read(line: Line, table: str) -> tuple[list[str], list[str]]:
    """What a reader sees: the columns and the rows. Of another engine, so that nothing is shared with the writer."""
    view = Inspector(line.config).look(table)
    assert view is not None
    rows = view.table.scan().to_arrow()
    return rows.column_names, sorted(map(str, rows.to_pylist()))


@contextmanager
def _reader(line: Line, table: str) -> Iterator[list[Any]]:
    """Someone who reads the table all the while."""
    seen: list[Any] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            seen.append(_read(line, table))

    reader = threading.Thread(target=look)
    reader.start()
    try:
        yield seen
    finally:
        ended.set()
        reader.join()


def _die() -> None:
    raise Killed
