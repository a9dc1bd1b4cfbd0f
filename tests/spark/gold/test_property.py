# ruff: noqa: E501 - a query reads best in one piece
"""Whatever happens to the events, in whatever batches: every Gold table equals DuckDB over the final Bronze.

Each case is a random history of its own (inserts, updates, deletes, late, doubled and out-of-order events, cut into
batches at random places), told apart by `c`, so that hundreds of cases share one run of real flows on real Iceberg.
`LODE_CASES=5000 LODE_SEED=7 LODE_BATCHES=12` makes it longer.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from wire import Wire, Works

from lodestream import Json, Kafka, Pipeline

CASES = int(os.environ.get("LODE_CASES", "320"))
SEED = int(os.environ.get("LODE_SEED", "0")) or random.SystemRandom().randrange(1, 10**9)
BATCHES = int(os.environ.get("LODE_BATCHES", "4"))
ZONES = "location,borough\n0,north\n1,north\n2,south\n"
OTHER_ZONES = "location,borough\n0,north\n1,south\n3,east\n"

GOLD = {
    "groups": "SELECT c, zone, count(*) AS n, sum(fare) AS s, avg(fare) AS a, count_if(cat = 'x') AS x, sum(qty) AS q FROM silver.trips GROUP BY c, zone",
    "often": "SELECT c, cat, count(*) AS n, sum(fare) AS s FROM silver.trips GROUP BY c, cat HAVING count(*) > 1",
    "named": "SELECT t.c, t.id, t.fare, z.borough FROM silver.trips t LEFT JOIN silver.zones z ON z.location = t.zone WHERE t.qty > 0",
    "boroughs": "SELECT t.c, z.borough, sum(t.fare) AS s, count(*) AS n FROM silver.trips t LEFT JOIN silver.zones z ON z.location = t.zone GROUP BY t.c, z.borough",
    "extremes": "SELECT c, zone, min(fare) AS lo, max(seen) AS last, count(DISTINCT cat) AS cats FROM silver.trips GROUP BY c, zone",
    "sessions": "SELECT c, session_window.start AS s, count(*) AS n FROM silver.trips GROUP BY c, session_window(seen, '5 minutes')",
    "busy": "SELECT c, max(recent) AS most FROM (SELECT c, count(*) OVER (PARTITION BY c ORDER BY seen RANGE BETWEEN INTERVAL 10 MINUTES PRECEDING AND CURRENT ROW) AS recent FROM silver.trips) GROUP BY c HAVING max(recent) > 2",
    "paid": "SELECT t.c, t.cat, sum(p.amount) AS paid, count(p.pay) AS n, count(*) AS pairs FROM silver.trips t LEFT JOIN silver.pays p ON p.c = t.c AND p.trip = t.id GROUP BY t.c, t.cat",
    "pay_totals": "SELECT c, sum(amount) AS s, count(*) AS n FROM silver.pays GROUP BY c",
    "running": "SELECT c, id, sum(coalesce(qty, 0)) OVER (ORDER BY c, id ROWS UNBOUNDED PRECEDING) AS total FROM silver.trips",
    "fullest": "SELECT c, max(n) AS n, sum(s) AS s FROM gold.groups GROUP BY c",
    "level": "SELECT a.c, a.n AS direct, b.n AS summed FROM (SELECT c, count(*) AS n FROM silver.trips GROUP BY c) a JOIN (SELECT c, sum(n) AS n FROM gold.groups GROUP BY c) b ON b.c = a.c",
}
STRATEGIES = {
    "groups": "delta", "often": "delta", "named": "delta", "boroughs": "delta", "extremes": "affected",
    "sessions": "affected", "busy": "affected", "paid": "affected", "pay_totals": "delta", "running": "full",
    "fullest": "affected", "level": "affected",
}  # fmt: skip
LARGE = ("groups", "named", "extremes")  # as if they were too large to be written as a whole

# What the tables must hold, in another engine's SQL, from the last Bronze alone.
ORACLE = """
CREATE TABLE trips AS SELECT * EXCLUDE (r, place) FROM (SELECT *, row_number() OVER (PARTITION BY c, id ORDER BY seq DESC) AS r FROM trip_events) WHERE r = 1 AND op <> 'd';
CREATE TABLE pays AS SELECT * EXCLUDE (r, place) FROM (SELECT *, row_number() OVER (PARTITION BY c, pay ORDER BY place) AS r FROM pay_events) WHERE r = 1;
CREATE VIEW named_trips AS SELECT t.*, z.borough FROM trips t LEFT JOIN zones z ON z.location = t.zone;
CREATE TABLE groups AS SELECT c, zone, count(*) AS n, sum(fare) AS s, count(fare) AS fares, count(*) FILTER (WHERE cat = 'x') AS x, sum(qty) AS q FROM trips GROUP BY c, zone;
CREATE TABLE often AS SELECT c, cat, count(*) AS n, sum(fare) AS s FROM trips GROUP BY c, cat HAVING count(*) > 1;
CREATE TABLE named AS SELECT c, id, fare, borough FROM named_trips WHERE qty > 0;
CREATE TABLE boroughs AS SELECT c, borough, sum(fare) AS s, count(*) AS n FROM named_trips GROUP BY c, borough;
CREATE TABLE extremes AS SELECT c, zone, min(fare) AS lo, max(seen) AS last, count(DISTINCT cat) AS cats FROM trips GROUP BY c, zone;
CREATE TABLE sessions AS SELECT c, min(seen) AS s, count(*) AS n FROM (SELECT *, sum(gap) OVER (PARTITION BY c ORDER BY seen, id) AS session FROM (
  SELECT *, CASE WHEN seen - lag(seen) OVER (PARTITION BY c ORDER BY seen, id) <= INTERVAL 5 MINUTES THEN 0 ELSE 1 END AS gap FROM trips)) GROUP BY c, session;
CREATE TABLE busy AS SELECT a.c, max(n) AS most FROM (SELECT a.c, a.id, count(*) AS n FROM trips a JOIN trips b ON a.c = b.c AND b.seen BETWEEN a.seen - INTERVAL 10 MINUTES AND a.seen GROUP BY a.c, a.id) a GROUP BY a.c HAVING max(n) > 2;
CREATE TABLE paid AS SELECT t.c, t.cat, sum(p.amount) AS paid, count(p.pay) AS n, count(*) AS pairs FROM trips t LEFT JOIN pays p ON p.c = t.c AND p.trip = t.id GROUP BY t.c, t.cat;
CREATE TABLE pay_totals AS SELECT c, sum(amount) AS s, count(*) AS n FROM pays GROUP BY c;
CREATE TABLE running AS SELECT a.c, a.id, (SELECT sum(coalesce(b.qty, 0)) FROM trips b WHERE (b.c, b.id) <= (a.c, a.id)) AS total FROM trips a;
CREATE TABLE fullest AS SELECT c, max(n) AS n, sum(s) AS s FROM groups GROUP BY c;
CREATE TABLE level AS SELECT c, count(*) AS direct, count(*) AS summed FROM trips GROUP BY c;
CREATE TABLE modes AS SELECT c, max(fare) AS top, count(*) AS n FROM trips GROUP BY c;
"""


def _declared(folder: Path) -> Any:
    line = Pipeline("line")
    line.bronze("trips_raw", Kafka("trips"))
    line.bronze("pays_raw", Kafka("pays"))
    line.reference("zones", str(folder / "zones.csv"), schema="location int, borough string")
    schema = "c int, id int, seq int, op string, zone int, cat string, fare decimal(8,2), qty int, seen timestamp_ntz"

    @line.silver(decode=Json(schema), keys=["c", "id"], sequence_by="seq", delete_when="op = 'd'")
    def trips(trips_raw: DataFrame) -> DataFrame:
        return trips_raw

    @line.silver(decode=Json("c int, pay int, trip int, amount decimal(8,2)"), keys=["c", "pay"])
    def pays(pays_raw: DataFrame) -> DataFrame:
        return pays_raw

    for name, sql in GOLD.items():
        line.gold(name, sql=sql)

    @line.gold(keys="c")
    def modes(trips: DataFrame) -> DataFrame:
        return trips.groupBy("c").agg(f.max("fare").alias("top"), f.count("*").alias("n"))

    return line, line.graph()


def _histories(chance: random.Random) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """(batch, topic, event) of all cases; the order within a batch is random, too."""
    for case in range(CASES):
        yield from _trips(chance, case)
        for pay in range(chance.randrange(4)):
            paid = {"c": case, "pay": pay, "trip": chance.randrange(4), "amount": _cents(chance)}
            for _ in range(1 + (chance.random() < 0.2)):
                yield chance.randrange(BATCHES), "pays", paid


def _trips(chance: random.Random, case: int) -> Iterator[tuple[int, str, dict[str, Any]]]:
    numbers = defaultdict(int)
    for _ in range(chance.randrange(1, 12)):
        trip = chance.randrange(4)
        numbers[trip] += 1
        minute = datetime(2024, 1, 1) + timedelta(minutes=chance.randrange(40))
        event = {
            "c": case,
            "id": trip,
            "seq": numbers[trip],
            "op": chance.choice("cuud"),
            "zone": chance.choice([None, 0, 1, 2, 3]),
            "cat": chance.choice([None, "x", "y"]),
            "fare": chance.choice([None, _cents(chance)]),
            "qty": chance.choice([None, -1, 0, 1, 2]),
            "seen": minute.isoformat(),
        }
        batch = chance.randrange(BATCHES)
        yield batch, "trips", event
        if chance.random() < 0.2:  # the same again, now or later
            yield chance.randrange(batch, BATCHES), "trips", event


def _cents(chance: random.Random) -> float:
    return chance.randrange(-500, 5000) / 100


@pytest.mark.timeout(900)
def test_gold_equals_duckdb_over_the_final_bronze(lake: Any, tmp_path: Path) -> None:
    print(f"LODE_SEED={SEED} LODE_CASES={CASES} LODE_BATCHES={BATCHES}")  # noqa: T201 (pytest shows it when the test fails)
    chance = random.Random(SEED)
    histories = sorted(_histories(chance), key=lambda one: (one[0], chance.random()))
    topics = {topic: [(batch, event) for batch, t, event in histories if t == topic] for topic in ("trips", "pays")}
    wires = {f"bronze.{t}_raw": Wire([json.dumps(event).encode() for _, event in found]) for t, found in topics.items()}
    (tmp_path / "zones.csv").write_text(ZONES)
    works = Works(lake.config, lake.spark, _declared(tmp_path), wires)
    for name in LARGE:
        works.gold[f"gold.{name}"].small = 0
    for batch in range(BATCHES):
        if batch == BATCHES // 2:
            (tmp_path / "zones.csv").write_text(OTHER_ZONES)
        for topic, found in topics.items():
            wires[f"bronze.{topic}_raw"].end = sum(1 for number, _ in found if number <= batch)
        works.settle()
    for name, strategy in STRATEGIES.items():
        plan = works.gold[f"gold.{name}"].plan
        assert plan is not None
        assert plan.strategy == strategy, (name, plan.reason)
    _compare(works, tmp_path)


def _compare(works: Works, folder: Path) -> None:
    db = duckdb.connect()
    _load(
        db,
        works,
        "trip_events",
        "bronze.trips_raw",
        "c int, id int, seq int, op text, zone int, cat text, fare decimal(8,2), qty int, seen timestamp",
    )
    _load(db, works, "pay_events", "bronze.pays_raw", "c int, pay int, trip int, amount decimal(8,2)")
    db.execute(f"CREATE TABLE zones AS SELECT * FROM read_csv('{folder / 'zones.csv'}')")
    db.execute(ORACLE)
    wrong = {}
    for name in (*GOLD, "modes"):
        kept = works.rows(f"gold.{name}")
        ours = Counter(tuple(row) for row in kept.collect())
        theirs = Counter(_theirs(db, name))
        if ours != theirs:
            wrong[name] = (
                sorted({row[0] for row in (ours - theirs) + (theirs - ours)})[:5],
                list((ours - theirs) + (theirs - ours))[:4],
            )
    assert not wrong, f"LODE_SEED={SEED} LODE_CASES={CASES} LODE_BATCHES={BATCHES}: cases {wrong}"


def _theirs(db: duckdb.DuckDBPyConnection, name: str) -> list[tuple[Any, ...]]:
    rows = db.execute(f"SELECT * FROM {name}").fetchall()
    if name != "groups":
        return rows
    six = Decimal("0.000001")  # avg(decimal(8,2)) is decimal(12,6), rounded half up
    return [
        (c, zone, n, s, (s / fares).quantize(six, ROUND_HALF_UP) if fares else None, x, q)
        for c, zone, n, s, fares, x, q in rows
    ]


def _load(db: duckdb.DuckDBPyConnection, works: Works, name: str, bronze: str, columns: str) -> None:
    """Bronze as it is at the end, taken apart by DuckDB's own JSON reader."""
    raw = works.rows(bronze).select("offset", "value").toArrow()  # noqa: F841 (DuckDB finds it by name)
    pairs = [column.split(" ", 1) for column in columns.split(", ")]
    items = ", ".join(
        f"CAST(json_extract_string(decode(value), '$.{column}') AS {kind}) AS {column}" for column, kind in pairs
    )
    db.execute(f'CREATE TABLE {name} AS SELECT "offset" AS place, {items} FROM raw')
