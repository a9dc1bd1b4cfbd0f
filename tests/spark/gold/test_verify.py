"""A Gold table that is not what its query says is found, however it came to be so, and nothing else is."""

from __future__ import annotations

import threading
import time
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gold_line import Gold, Silver, declared
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lodestream.engine import run_pipeline, upkeep, verify_tables
from lodestream.engine.build import Builder
from lodestream.flows.context import Tuning
from lodestream.observe import Event, EventLog
from lodestream.pipeline.gold import InputInfo
from lodestream.planning.project import open_project
from lodestream.recovery.verify.compare import Comparison, Sampling
from lodestream.recovery.verify.result import Verification
from lodestream.recovery.verify.table import verify_table
from lodestream.tables.lake import Lake as Tables

TRIPS = InputInfo("silver.trips", {"id": "int", "zone": "string", "fare": "decimal(8,2)", "miles": "double"}, ("id",))
ZONES = InputInfo("silver.zones", {"zone": "string", "name": "string"}, ("zone",))
ROWS = [
    (1, "a", "1.50", "0.1"), (2, "a", "2.00", "0.2"), (3, "b", "5.00", "0.3"), (4, "b", "7.25", "1e16"),
    (5, "b", "1.00", "-1e16"), (6, None, "4.00", None), (7, "c", "9.00", "2.5"), (8, "c", None, "7"),
]  # fmt: skip
PIPELINE = """
from lodestream import Files, Json, Pipeline

line = Pipeline("line")
line.bronze("zones_raw", Files("zones", format="json"))


@line.silver(decode=Json("zone string, tariff int, at int"), keys="zone", sequence_by="at")
def zones(zones_raw):
    return zones_raw


line.gold("tariffs", sql="SELECT tariff, count(*) AS n FROM silver.zones GROUP BY tariff", verify="2 s")
"""
BY_ZONE = "SELECT zone, count(*) AS n, sum(fare) AS total FROM silver.trips GROUP BY zone"


class Line:
    def __init__(self, lake: Any) -> None:
        self.spark, self.catalog = lake.spark, lake.config.catalog.name
        self.tables = Tables(lake.spark.newSession(), self.catalog)
        self.trips, self.zones = Silver(self.tables, TRIPS), Silver(self.tables, ZONES)
        self.trips.append(ROWS)
        self.zones.become([("a", "Aldgate"), ("b", "Bow"), ("d", "Deptford")])

    def gold(self, name: str, sql: str | None = None, *, inputs: tuple[str, ...] = (TRIPS.name,), **given: Any) -> Gold:
        own = {key: given.pop(key) for key in ("contract", "small", "lookups") if key in given}
        known = {TRIPS.name: TRIPS.keys, ZONES.name: ZONES.keys}
        read = {one: known.get(one, ()) for one in inputs}
        return Gold(self.spark, self.catalog, declared(name, sql, **given), read, appended=(TRIPS.name,), **own)

    def harm(self, name: str, sql: str) -> None:
        """What a person with a Spark shell can do to a table."""
        self.tables.spark.sql(sql.format(self.tables.identifier(name)))


@pytest.fixture
def line(lake: Any) -> Line:
    return Line(lake)


def verified(gold: Gold, **given: Any) -> Verification:
    gold.restart()  # a flow that has prepared nothing, as the command has it
    return verify_table(gold.gold, **given)


def counts(found: Verification) -> tuple[int, int, int]:
    return found.rows.added, found.rows.missing, found.rows.changed


@pytest.mark.timeout(300)
def test_tables_kept_in_every_way_are_equal_to_their_queries(line: Line) -> None:
    def longest(trips: DataFrame, zones: DataFrame) -> DataFrame:
        made = trips.groupBy("zone").agg(f.sum("miles").alias("miles"), f.collect_set("id").alias("ids"))
        return made.join(zones, "zone", "left").withColumn("ids", f.sort_array("ids"))

    both = (TRIPS.name, ZONES.name)
    tables = [
        line.gold("sums", BY_ZONE),
        line.gold("often", f"{BY_ZONE} HAVING count(*) > 1"),
        line.gold("highest", "SELECT zone, max(fare) AS top, sum(miles) AS miles FROM silver.trips GROUP BY zone"),
        line.gold("ranked", "SELECT id, sum(fare) OVER (ORDER BY id) AS so_far FROM silver.trips"),
        line.gold("named", "SELECT t.id, z.name FROM silver.trips t LEFT JOIN silver.zones z ON z.zone = t.zone",
                  inputs=both, lookups=(ZONES.name,)),
        line.gold("longest", function=longest, keys="zone", inputs=both, lookups=(ZONES.name,)),
        line.gold("odd", "SELECT zone, map('b', max(fare), 'a', min(fare)) AS m, struct(avg(miles) AS x) AS `s.t` "
                  "FROM silver.trips GROUP BY zone"),
    ]  # fmt: skip
    for table in tables:
        table.step()
    above = line.gold("above", "SELECT count(*) AS zones, sum(n) AS n FROM gold.sums", inputs=("gold.sums",))
    above.step()
    line.trips.append([(9, "a", "0.50", "3.5"), (10, "d", "1.00", None)])
    for table in tables:
        table.step()
    # `above` is a batch behind: its own positions count, not the newest.
    found = {table.table.name: verified(table) for table in (*tables, above)}
    assert {name: one.status for name, one in found.items()} == dict.fromkeys(found, "equal"), found
    assert {gold.gold.plan.strategy for gold in tables if gold.gold.plan} == {"delta", "affected", "full"}
    assert (found["gold.sums"].rows.stored, found["gold.ranked"].rows.fresh) == (5, 10)
    assert found["gold.odd"].snapshot == line.tables.store("gold.odd").head().id  # type: ignore[union-attr]


def test_rows_that_were_added_removed_doubled_and_changed_are_told_apart(line: Line) -> None:
    sums = line.gold("sums", BY_ZONE)
    sums.step()
    line.harm("gold.sums", "DELETE FROM {} WHERE zone = 'c'")
    line.harm("gold.sums", "UPDATE {} SET total = 8.50 WHERE zone = 'a'")
    line.harm("gold.sums", "UPDATE {} SET n = 4, total = NULL WHERE zone IS NULL")
    line.harm("gold.sums", "INSERT INTO {} SELECT * FROM {0} WHERE zone = 'b'".replace("{}", "{0}", 1))
    found = verified(sums)
    assert (found.status, counts(found)) == ("different", (1, 1, 2))
    assert dict(found.rows.columns) == {"n": 1, "total": 2}
    assert (found.rows.stored, found.rows.fresh) == (4, 4)
    by_kind = {one.kind: one for one in found.rows.samples}
    assert by_kind["added"].stored == {"zone": "b", "n": "3", "total": "13.25"}
    assert by_kind["missing"].fresh == {"zone": "c", "n": "2", "total": "9.00"}
    changed = [one for one in found.rows.samples if one.kind == "changed"]
    assert [(one.stored, one.fresh, one.columns) for one in changed] == [
        ({"zone": None, "n": "4", "total": None}, {"zone": None, "n": "1", "total": "4.00"}, ("n", "total")),
        ({"zone": "a", "n": "2", "total": "8.50"}, {"zone": "a", "n": "2", "total": "3.50"}, ("total",)),
    ]


def test_a_group_that_was_not_followed_is_found(line: Line) -> None:
    """As a wrong plan leaves it: the positions move on, one group does not."""
    sums = line.gold("sums", BY_ZONE)
    sums.step()
    stale = line.tables.whole("gold.sums").where("zone = 'a'").collect()
    line.trips.append([(9, "a", "0.50", None), (10, "b", "1.00", None)])
    sums.step()
    total = Decimal(stale[0]["total"])
    line.harm("gold.sums", f"UPDATE {{}} SET n = {stale[0]['n']}, total = {total} WHERE zone = 'a'")
    found = verified(sums)
    assert (found.status, counts(found)) == ("different", (0, 0, 1))
    assert found.rows.samples[0].columns == ("n", "total")


def test_state_that_no_reader_sees_is_compared_too(line: Line) -> None:
    sums, often = line.gold("sums", BY_ZONE), line.gold("often", f"{BY_ZONE} HAVING count(*) > 1")
    for table in (sums, often):
        table.step()
    stored = line.tables.whole("gold.sums", line.tables.store("gold.sums").head().id)  # type: ignore[union-attr]
    more = f.when(stored.zone == "b", 1).otherwise(0)
    wrong = stored.withColumn("_lode_state", f.col("_lode_state").withField("n", f.col("_lode_state.n") + more))
    line.tables.overwrite("gold.sums", wrong, "main", {})
    found = verified(sums)
    assert (found.status, found.rows.any, found.state.changed) == ("different", False, 1)
    assert dict(found.state.columns) == {"_lode_state": 1}
    assert verified(often).status == "equal"


def test_rows_without_a_key_are_counted_and_protected_columns_are_not_shown(line: Line) -> None:
    fares = line.gold("fares", "SELECT upper(zone) AS z, fare FROM silver.trips LIMIT 1000")
    fares.step()
    line.harm("gold.fares", "DELETE FROM {} WHERE fare = 9")
    line.harm("gold.fares", "INSERT INTO {} VALUES ('A', 1.50), ('A', 1.50)")
    found = verified(fares, hide={"fare"})
    assert (found.status, counts(found)) == ("different", (2, 1, 0))
    assert [one.stored or one.fresh for one in found.rows.samples] == [
        {"z": "A", "fare": "***"}, {"z": "A", "fare": "***"}, {"z": "C", "fare": "***"},
    ]  # fmt: skip


def test_a_sample_of_all_keys_finds_what_all_rows_show(line: Line) -> None:
    sums = line.gold("sums", BY_ZONE)
    sums.step()
    line.harm("gold.sums", "DELETE FROM {} WHERE zone = 'c'")
    line.harm("gold.sums", "UPDATE {} SET n = 9 WHERE zone IS NULL")
    found = verified(sums, sampling=Sampling(4, 1))
    assert (found.status, counts(found), found.sampled, found.seed) == ("different", (0, 1, 1), 4, 1)
    drawn = [verified(sums, sampling=Sampling(1, seed)) for seed in range(4)]
    assert {one.sampled for one in drawn} == {1}
    assert {one.status for one in drawn} == {"equal", "different"}, "each seed looks at another key"


def test_what_asks_the_clock_or_chance_is_not_comparable(line: Line) -> None:
    asked = {
        "today": "SELECT id, current_date() AS d FROM silver.trips",
        "typed": "SELECT id FROM silver.trips WHERE DATE 'today' > DATE '2020-01-01'",
        "cast": "SELECT id FROM silver.trips WHERE CAST('yesterday' AS TIMESTAMP) > TIMESTAMP '2020-01-01'",
        "drawn": "SELECT id, rand() AS r FROM silver.trips",
        "named": "SELECT id, uuid() AS u FROM silver.trips",
        "order": "SELECT collect_list(id) AS ids FROM silver.trips",
    }
    tables = {name: line.gold(name, sql, strategy="full") for name, sql in asked.items()}
    days = "SELECT cast(today AS date) AS d, to_date(now) AS e FROM (SELECT *, '2024-01-01' AS now, zone AS today "
    tables["column"] = line.gold("column", f"{days} FROM silver.trips WHERE zone IS NULL)", strategy="full")
    for table in tables.values():
        table.step()
    line.harm("gold.order", "UPDATE {} SET ids = array(5)")
    found = {name: verified(table) for name, table in tables.items()}
    assert found.pop("column").status == "equal", "a column of that name is no question"
    assert {name: one.status for name, one in found.items()} == dict.fromkeys(asked, "not comparable"), found
    assert "clock ('yesterday')" in (found["cast"].reason or "")
    assert "(current_date)" in (found["today"].reason or "")
    assert "chance (rand)" in (found["drawn"].reason or "")
    assert "two answers" in (found["order"].reason or "")


def test_a_column_that_depends_on_the_order_of_rows_forgives_no_other_one(line: Line) -> None:
    line.trips.append([(number, "z", "1.00", str(number)) for number in range(20, 60)])
    table = line.gold("some", "SELECT zone, count(*) AS n, first(miles) AS any FROM silver.trips GROUP BY zone")
    table.step()
    line.harm("gold.some", "UPDATE {} SET any = -1 WHERE zone = 'z'")
    assert verified(table).status == "not comparable"
    line.harm("gold.some", "UPDATE {} SET n = 7 WHERE zone = 'a'")
    found = verified(table)
    assert (found.status, counts(found), dict(found.rows.columns)) == ("different", (0, 0, 1), {"n": 1})
    line.harm("gold.some", "DELETE FROM {} WHERE zone = 'a'")
    assert counts(verified(table)) == (0, 1, 0)


def test_what_cannot_be_read_any_more_cannot_be_verified(line: Line) -> None:
    sums = line.gold("sums", BY_ZONE)
    assert (verified(sums).status, verified(sums).reason) == ("cannot be verified", "it has not been made yet")
    sums.step()
    other = line.gold("sums", BY_ZONE.replace("sum(fare)", "sum(fare + 1)"))
    assert "another query" in (verified(other).reason or "")
    old = line.tables.store("silver.trips").head()
    line.trips.append([(9, "a", "0.50", None)])
    store = line.tables.store("silver.trips")
    store.table.expireSnapshots().expireSnapshotId(old.id).commit()  # type: ignore[union-attr]
    found = verified(sums)
    assert found.status == "cannot be verified"
    assert found.reason == f"snapshot {old.id} of its input silver.trips has expired"  # type: ignore[union-attr]


def test_a_rebuild_that_was_asked_for_outlives_the_process_and_is_made_once(line: Line) -> None:
    sums = line.gold("sums", BY_ZONE)
    sums.step()
    line.harm("gold.sums", "UPDATE {} SET n = 7 WHERE zone = 'a'")
    sums.gold.rebuild_next()
    sums.restart()  # before the next batch
    assert sums.step() is not None
    sums.check()
    assert [event.name for event in sums.flow.take_notices()] == ["verify.rebuilt"]
    assert sums.step() is None
    sums.restart()
    assert sums.step() is None, "it is made once"
    assert verified(sums).status == "equal"


def test_nothing_is_written_when_a_verification_ends_in_the_middle(line: Line) -> None:
    sums = line.gold("sums", f"{BY_ZONE} HAVING count(*) > 0")
    sums.step()
    line.harm("gold.sums", "DELETE FROM {} WHERE zone = 'c'")
    names = ("gold.sums", "gold.sums__state", "silver.trips")

    def metadata() -> list[str]:
        return [line.tables.store(name).table.operations().current().metadataFileLocation() for name in names]

    before = metadata()
    calls = []

    def stop() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verified(sums, proceed=stop)
    assert verified(sums).status == "different"
    assert metadata() == before


@pytest.mark.timeout(300)
def test_an_idle_driver_finds_a_wrong_table_says_so_and_rebuilds_it(lake: Any, tmp_path: Path) -> None:
    (tmp_path / "zones").mkdir()
    rows = [("a", 1), ("b", 2), ("c", 1)]
    lines = [f'{{"zone": "{zone}", "tariff": {tariff}, "at": 1}}\n' for zone, tariff in rows]
    (tmp_path / "zones" / "1.json").write_text("".join(lines))
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    project = open_project(lake.config)
    stop, events = threading.Event(), list[Event]()
    given = {"listeners": [events.append], "stop": stop, "spark": lake.spark}
    running = threading.Thread(target=run_pipeline, args=(project,), kwargs=given)
    running.start()

    def wait(name: str, after: Event | None = None) -> Event:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and running.is_alive():
            later = events[events.index(after) + 1 :] if after else list(events)
            found = next((event for event in later if event.name == name), None)
            if found is not None:
                return found
            time.sleep(0.05)
        raise AssertionError(f"no {name} in {[event.line() for event in events]}")

    try:
        assert wait("verify.equal").facts()["rows"] == 2
        part = tmp_path / "zones" / ".2"
        part.write_text('{"zone": "c", "tariff": 2, "at": 2}\n')
        part.rename(tmp_path / "zones" / "2.json")
        while sum(event.name == "batch.published" and event.table == "gold.tariffs" for event in events) < 2:
            assert running.is_alive()
            time.sleep(0.05)
        tables = Tables(lake.spark.newSession(), lake.config.catalog.name)
        tables.spark.sql("UPDATE lode.gold.tariffs SET n = 7 WHERE tariff = 2")
        mismatch = wait("verify.mismatch")
        told = mismatch.facts()
        assert (told["changed"], told["rebuild"], told["samples"][0]["stored"]["n"]) == (1, True, "7")
        rebuilt = wait("verify.rebuilt", mismatch)
        assert wait("verify.equal", rebuilt).facts()["snapshot"] == rebuilt.facts()["snapshot"]
        assert sorted(tables.whole("gold.tariffs").select("tariff", "n").collect()) == [(1, 1), (2, 2)]
    finally:
        stop.set()
        running.join(60)
    assert [event.name for event in events].count("verify.rebuilt") == 1
    assert [(one.table, one.status) for one in verify_tables(project, ["tariffs"])] == [("gold.tariffs", "equal")]
    whole = tables.store("gold.tariffs").snapshot(rebuilt.facts()["snapshot"])
    assert whole is not None
    assert whole.operation == "overwrite", "one atomic step"


def test_a_batch_that_begins_cancels_the_spark_jobs_of_a_verification(
    lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    (tmp_path / ".lode").mkdir(exist_ok=True)
    (tmp_path / ".lode" / "verified.json").write_text('{"gold.tariffs": 0}')
    project = open_project(lake.config)
    builder = Builder(project, lake.spark, "run", "")
    runner = SimpleNamespace(name="gold.tariffs", flow=builder.flow(project.graph["gold.tariffs"]))
    driver = SimpleNamespace(idle=10.0, wake=print)
    driver.idle_for = lambda: driver.idle
    monkeypatch.setattr(upkeep, "verify_one", lambda *given: lake.spark.range(10**14).selectExpr("max(id)").collect())
    said = list[Event]()
    log = EventLog(tmp_path / "events", "run", said.append)
    kept = upkeep.Upkept(project, lake.spark, builder, [runner], driver, log)  # type: ignore[list-item, arg-type]
    idle_work = upkeep.upkeep(kept)
    assert idle_work is not None
    tracker = lake.spark.sparkContext.statusTracker()

    def running() -> list[int]:
        found = {job: tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("lode-upkeep")}
        return [job for job, info in found.items() if info and info.status == "RUNNING"]

    def becomes(wanted: bool) -> bool:
        deadline = time.monotonic() + 30
        while bool(running()) is not wanted and time.monotonic() < deadline:
            time.sleep(0.05)
        return bool(running()) is wanted

    try:
        assert becomes(True)
        driver.idle = 0.0
        assert becomes(False), "a batch has the cores to itself"
    finally:
        driver.idle = 0.0
        idle_work.close()
        log.close()
    assert said == [], "nothing was found, so nothing is said"


def test_doubles_are_equal_up_to_the_order_of_adding_and_no_further(spark: Any) -> None:
    session = spark.newSession()
    Tuning(session).fit(0)

    def row(x: str = "1D", y: str = "1", a: str = "array(1D, NULL)", m: str = "map('k', 1D, 'l', 2D)") -> str:
        return f"{x} AS x, float({y}) AS y, named_struct('a', {a}, 'b', 'b') AS s, {m} AS m"

    def differ(pairs: list[tuple[str, str]], keys: tuple[str, ...]) -> tuple[int, int, int]:
        """All at once, each pair with a key of its own."""
        left, right = (
            session.sql(" UNION ALL ".join(f"SELECT {n} AS id, {pair[side]}" for n, pair in enumerate(pairs)))
            for side in (0, 1)
        )
        found = Comparison(left, right, keys).differences()
        return found.added, found.missing, found.changed

    assert (0.1 + 0.2) + 0.3 != (0.3 + 0.2) + 0.1, "these are not the same number"
    alike = [
        (row("0.1D + 0.2D + 0.3D"), row("0.3D + 0.2D + 0.1D")),
        (row("1e300D"), row("1.0000000000001e300D")),
        (row("1e-17D"), row("0D")),
        (row("double('nan')"), row("double('nan')")),
        (row("double('inf')"), row("double('inf')")),
        (row(y="1.0000001"), row(y="1")),
        (row(), row(a="array(1.0000000000001D, NULL)", m="map('l', 2.0000000000001D, 'k', 1D)")),
        (row(m="NULL"), row(m="NULL")),
    ]
    unlike = [
        (row("1D"), row("1.00000001D")),
        (row("double('inf')"), row("1D")),
        (row("double('nan')"), row("1D")),
        (row("NULL"), row("0D")),
        (row("0D"), row("-0D")),
        (row(y="1.00001"), row(y="1")),
        (row(a="array(1D)"), row(a="array(1D, NULL)")),
        (row(a="NULL"), row(a="array()")),
        (row(m="map('k', 1D)"), row(m="map('l', 1D)")),
    ]
    assert differ(alike, ("id",)) == differ(alike, ()) == (0, 0, 0)
    assert differ(unlike, ("id",)) == (0, 0, len(unlike))
    assert differ(unlike, ()) == (len(unlike), len(unlike), 0)
