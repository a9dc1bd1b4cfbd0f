# ruff: noqa: E501 - a query reads best in one piece
"""On Spark itself, types and digits included: Gold kept by its plan equals the user's query over the inputs."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import sqlglot

from lodestream.pipeline.gold import InputInfo, analyse
from lodestream.pipeline.gold.types import parse_type, type_of

TRIPS = InputInfo(
    "silver.trips",
    {
        "id": "int",
        "zone": "int",
        "cat": "string",
        "fare": "decimal(10,2)",
        "fine": "decimal(18,6)",
        "qty": "int",
        "big": "bigint",
        "dist": "double",
        "ok": "boolean",
        "seen": "timestamp_ntz",
        "at": "timestamp",
    },
    keys=("id",),
)
PAYS = InputInfo("silver.pays", {"pay": "int", "trip": "int", "amount": "decimal(8,2)"}, keys=("pay",))
ZONES = InputInfo("silver.zones", {"location": "int", "borough": "string", "rate": "decimal(5,3)"}, lookup=True)
INPUTS = {info.name: info for info in (TRIPS, PAYS, ZONES)}

DELTA = [
    """SELECT zone, count(*) AS n, count(cat) AS c, sum(fare) AS s, sum(qty) AS q, sum(big) AS b, avg(fare) AS af,
      avg(fine) AS a6, avg(qty) AS aq, round(avg(fare), 2) AS r, sum(fine) / count(*) AS per, count_if(ok) AS oks,
      sum(fare) FILTER (WHERE qty > 2) AS f, sum(CASE WHEN ok THEN fare ELSE 0 END) AS e, bool_and(ok) AS every,
      cast(avg(cast(dist AS decimal(18,6))) AS double) AS d FROM silver.trips GROUP BY zone""",
    "SELECT count(*) AS n, sum(fare) AS s, avg(fine) AS a FROM silver.trips",
    "SELECT cat, count(*) AS n FROM silver.trips GROUP BY cat HAVING count(*) > 3",
    """SELECT z.borough, year(t.seen) AS y, sum(t.fare * z.rate) AS s, avg(t.fare * z.rate) AS a FROM silver.trips t
      LEFT JOIN silver.zones z ON t.zone = z.location GROUP BY z.borough, year(t.seen)""",
    "SELECT window.start AS start, window.end AS stop, count(*) AS n FROM silver.trips GROUP BY window(at, '10 minutes')",
    "SELECT zone, window(seen, '10 minutes', '5 minutes').start AS w, sum(qty) AS q FROM silver.trips "
    "GROUP BY zone, window(seen, '10 minutes', '5 minutes')",
    """SELECT t.id, t.cat, t.fare, z.borough FROM silver.trips t LEFT JOIN silver.zones z ON t.zone = z.location
      WHERE t.qty IS NOT NULL""",
    "SELECT cat, ok FROM silver.trips",
    "SELECT DISTINCT zone, date(seen) AS day FROM silver.trips",
]
AFFECTED = [
    "SELECT zone, min(fare) AS lo, max(seen) AS hi, count(DISTINCT cat) AS c, sum(qty) AS q FROM silver.trips GROUP BY zone",
    "SELECT zone, session_window.start AS s, session_window.end AS e, count(*) AS n FROM silver.trips "
    "GROUP BY zone, session_window(seen, '5 minutes')",
    "SELECT cat, percentile(fare, 0.5) AS p, mode(qty, true) AS m, max_by(id, struct(fare, id)) AS best "
    "FROM silver.trips GROUP BY cat",
    "SELECT id, zone, lag(fare) OVER (PARTITION BY zone ORDER BY seen, id) AS before, count(*) OVER (PARTITION BY zone "
    "ORDER BY seen RANGE BETWEEN INTERVAL 10 MINUTES PRECEDING AND CURRENT ROW) AS recent FROM silver.trips",
    """SELECT t.zone, sum(p.amount) AS paid, count(p.pay) AS n FROM silver.trips t
      LEFT JOIN silver.pays p ON p.trip = t.id GROUP BY t.zone""",
]


def contents(seed: int) -> dict[str, list[tuple[Any, ...]]]:
    """About forty trips; two seeds share many rows, so that a batch has unchanged, changed, new and lost rows."""
    chance = random.Random(seed)
    trips = [_trip(random.Random(key if chance.random() < 0.6 else key * 1000 + seed), key) for key in range(60)]
    pays = [(key, chance.choice([None, key % 50]), _cents(chance, 5)) for key in range(40)]
    rates = [Decimal("1.250"), Decimal("0.333"), None]
    zones = [(key, chance.choice(["x", "y", None]), chance.choice(rates)) for key in range(5)]
    kept = [trip for trip in trips if chance.random() < 0.7]
    return {"silver.trips": kept, "silver.pays": pays, "silver.zones": zones}


def _trip(chance: random.Random, key: int) -> tuple[Any, ...]:
    moment = datetime(2024, 1, 1) + timedelta(minutes=chance.randrange(60), seconds=chance.randrange(60))
    return (
        key,
        chance.choice([None, 0, 1, 2, 3]),
        chance.choice([None, "a", "b"]),
        chance.choice([None, _cents(chance, 300)]),
        chance.choice([None, Decimal(chance.randrange(-(10**9), 10**9)).scaleb(-6)]),
        chance.choice([None, chance.randrange(-3, 9)]),
        chance.choice([None, chance.randrange(-(2**50), 2**50)]),
        chance.choice([None, chance.randrange(-99, 99) / 8]),
        chance.choice([None, True, False]),
        moment,
        moment,
    )


def _cents(chance: random.Random, most: int) -> Decimal:
    return Decimal(chance.randrange(-most * 100, most * 100)).scaleb(-2)


@pytest.mark.parametrize("sql", [*DELTA, *AFFECTED])
def test_gold_kept_by_its_plan_equals_the_query(keep: Any, sql: str) -> None:
    kept = keep(sql, INPUTS)
    assert kept.plan.strategy == ("delta" if sql in DELTA else "affected"), kept.plan.reason
    same_zones = contents(1)["silver.zones"]
    kept.become(contents(1))
    kept.become({**contents(2), "silver.zones": same_zones})
    kept.check(sql)
    kept.become(contents(3))
    kept.check(sql)
    kept.become({name: [] for name in INPUTS})
    kept.check(sql)


@pytest.mark.parametrize(("precision", "scale"), [(3, 0), (10, 2), (9, 9), (18, 6), (21, 0), (21, 15), (20, 8)])
def test_an_average_from_sum_and_count_has_every_digit_of_sparks(keep: Any, precision: int, scale: int) -> None:
    chance = random.Random(precision * 100 + scale)
    info = InputInfo("silver.t", {"k": "int", "x": f"decimal({precision},{scale})"})
    most = 10 ** min(precision, 6) - 1
    values = [Decimal(chance.randint(-most, most)).scaleb(-scale) for _ in range(4000)]
    rows = [(chance.randrange(700), chance.choice([value, value, value, None])) for value in values]
    sql = "SELECT k, avg(x) AS a, round(avg(x), 2) AS r, sum(x) AS s FROM silver.t GROUP BY k"
    kept = keep(sql, {info.name: info})
    assert kept.plan.strategy == "delta", kept.plan.reason
    kept.become({info.name: rows})
    kept.check(sql)


EXPRESSIONS = [
    "fare + 1",
    "fare * 2",
    "fare * qty",
    "fare / 3",
    "fare - fine",
    "fare * fine",
    "fine / fare",
    "qty / 2",
    "qty div 2",
    "qty * big\n    ",
    "qty % 3",
    "-fare",
    "abs(fare)",
    "round(fare)",
    "round(fare, 1)",
    "round(fine, 4)",
    "round(fine, 9)",
    "coalesce(fare, 0)",
    "coalesce(fare, 0.5)\n    ",
    "nvl(fare, fine)",
    "if(ok, fare, 1)",
    "CASE WHEN ok THEN fare END",
    "CASE WHEN ok THEN qty ELSE big END",
    "fare + fine + big\n    ",
    "CASE WHEN ok THEN 1 ELSE 0 END",
    "CASE WHEN ok THEN 1.5 ELSE 2 END",
    "cast(dist AS decimal(12,4))",
    "dist + fare",
    "1.50 * fare\n    ",
    "0.05 * fine",
    "fare * 100 / 7",
    "(fare + 1) * (fare - 1)",
    "hour(seen)",
    "length(cat)",
    "datediff(seen, seen)",
    "nullif(fare, 0)\n    ",
    "fare * 1000000000000",
    "qty + 1",
    "big + 1",
    "fare % 3",
    "fare * fare * fare",
    "greatest(qty, 1)",
    "year(seen) * fare",
]


def test_a_type_is_sparks_or_unknown(keep: Any) -> None:
    kept = keep("SELECT count(*) AS n FROM silver.trips", INPUTS)
    items = ", ".join(f"{text} AS x{index}" for index, text in enumerate(EXPRESSIONS))
    schema = kept.spark.sql(f"SELECT {items} FROM _lode_now_silver_trips").schema
    trees = [sqlglot.parse_one(text.strip(), dialect="spark") for text in EXPRESSIONS]
    found = [type_of(tree, lambda column: parse_type(TRIPS.columns[column.name])) for tree in trees]
    wrong = {
        text: (str(ours), theirs.dataType.simpleString())
        for text, ours, theirs in zip(EXPRESSIONS, found, schema, strict=True)
        if ours is not None and str(ours) != theirs.dataType.simpleString()
    }
    assert wrong == {}
    assert sum(kind is not None for kind in found) > 35


def test_rows_that_come_and_go_leave_no_trace(keep: Any) -> None:
    """Adding and taking away the same rows must give the very same digits, however often."""
    sql = "SELECT zone, sum(fare) AS s, avg(fine) AS a FROM silver.trips GROUP BY zone"
    kept = keep(sql, INPUTS)
    for seed in (1, 2, 1, 3, 1):
        kept.become(contents(seed))
    kept.check(sql)


def test_dates_make_the_same_keys(keep: Any) -> None:
    info = InputInfo("silver.t", {"day": "date", "x": "int"})
    sql = "SELECT date_trunc('month', day) AS month, day IN (DATE '2024-01-01') AS first, sum(x) AS s FROM silver.t GROUP BY ALL"
    kept = keep(sql, {info.name: info})
    kept.become({info.name: [(date(2024, 1, 1), 1), (date(2024, 1, 2), None), (None, 3)]})
    kept.check(sql)
    assert analyse(sql, {info.name: info}).keys == ("month", "first")
