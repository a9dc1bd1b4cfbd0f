# ruff: noqa: E501 - a query reads best in one piece
"""Queries that a Gold table once was not equal to, by what went wrong. Each is tried with many histories.

`duck` is what DuckDB is asked where translating the tokens is not enough. What only Spark can run is in `SPARK_ONLY`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from query_tables import History, State

REGRESSIONS: dict[str, str] = {
    # parentheses
    "an OR of a subquery, used in an AND": "WITH t AS (SELECT zone, fare > 2 OR qty > 1 AS flagged FROM silver.trips) SELECT zone, count(*) AS n FROM t WHERE flagged AND zone = 1 GROUP BY zone",
    "an OR of a subquery, negated": "SELECT id FROM (SELECT id, fare > 2 OR qty > 1 AS flagged FROM silver.trips) WHERE NOT flagged",
    "a sum of a subquery, multiplied": "SELECT q.k * 2 AS d, count(*) AS n FROM (SELECT DISTINCT zone + qty AS k FROM silver.trips) q GROUP BY q.k * 2",
    "an AND as a row of its own": "SELECT zone IN (0, 1) AND flag AS x, max(qty) AS m FROM silver.trips GROUP BY zone IN (0, 1) AND flag",
    "a key with parentheses": "SELECT (zone + qty) * 2 AS d, max(fare) AS m FROM silver.trips GROUP BY (zone + qty) * 2",
    "a condition with parentheses as a key": "SELECT (zone = 1 OR flag) AND qty > 0 AS c, max(fare) AS m FROM silver.trips GROUP BY (zone = 1 OR flag) AND qty > 0",
    # keys that are conditions
    "a key IS NULL": "SELECT cat IS NULL AS missing, max(fare) AS m FROM silver.trips GROUP BY cat IS NULL",
    "a key is NOT a flag": "SELECT NOT flag AS off, max(qty) AS m FROM silver.trips WHERE flag IS NULL GROUP BY NOT flag",
    "a column is NOT the key": "SELECT NOT flag AS off, try_sum(zone) AS n FROM silver.pays GROUP BY flag",
    "a key that compares nulls": "SELECT zone <=> qty AS same, max(id) AS m FROM silver.trips GROUP BY zone <=> qty",
    "a condition as the only column": "SELECT zone IN (0, 1) AND true AS x, rank() OVER (PARTITION BY zone IN (0, 1) AND true ORDER BY pay) AS r FROM silver.pays",
    # names and texts as the user wrote them
    "the names of a struct's fields": "SELECT to_json(named_struct('City', cat)) AS j, count(*) AS n FROM silver.trips GROUP BY 1",
    "the names of a struct's fields, by AS": "SELECT id, to_json(struct(cat AS Cat)) AS j FROM silver.trips",
    "the logarithm to ten": "SELECT floor(log10(CASE WHEN qty > 1 THEN 1000 ELSE 7 END)) AS f, count(*) AS n FROM silver.trips GROUP BY 1",
    "the logarithm to ten, row by row": "SELECT id, floor(log10(CASE WHEN qty > 1 THEN 1000 ELSE 7 END)) AS l FROM silver.trips",
    "a quote that is added": "SELECT concat(cat, '''s') AS c, count(*) AS n FROM silver.trips GROUP BY 1",
    "a doubled quote in a filter": "SELECT region, count(*) AS n FROM silver.zones WHERE region = 'o''hara' GROUP BY region",
    "a doubled quote in FILTER": "SELECT zone, count(*) FILTER (WHERE cat = 'o''hara') AS n FROM silver.trips GROUP BY zone",
    "a doubled quote in CASE": "SELECT zone, sum(CASE WHEN cat = 'o''hara' THEN qty ELSE 0 END) AS n FROM silver.trips GROUP BY zone",
    "a doubled quote in IN": "SELECT zone, max(qty) AS m FROM silver.visits WHERE cat IN ('it''s', 'o''hara') GROUP BY zone",
    "a doubled quote in a pattern": "SELECT id, cat FROM silver.trips WHERE cat LIKE '%''%'",
    "a doubled quote in a column": "SELECT pay, 'it''s' AS t FROM silver.pays",
    "double quotes around a quote": 'SELECT zone, count(*) AS n FROM silver.trips WHERE cat = "o\'hara" GROUP BY zone',
    # what makes or unites rows
    "an aggregate below a count": "SELECT count(*) AS n FROM (SELECT sum(fare) AS s FROM silver.trips) q",
    "an aggregate below a filter": "WITH kept AS (SELECT count(*) AS n FROM silver.visits) SELECT 1 AS x FROM kept t WHERE t.n <> 1",
    "an aggregate below an aggregate": "SELECT bool_and(x < 10.00) AS k FROM (SELECT count(*) AS x FROM silver.trips AS b) v",
    "a generator below a count": "SELECT count(*) AS n FROM (SELECT stack(2, qty, zone) AS v FROM silver.trips) q",
    "a generator below a join": "SELECT v.g, q.pay FROM (SELECT location AS g, explode(array(rate, zone)) AS k FROM silver.zones) v JOIN silver.pays AS q ON q.pay = v.k",
    # joins
    "an ON that is not about the joined table": "SELECT a.zone, count(*) AS n FROM silver.trips a JOIN silver.pays b ON a.id = b.trip LEFT JOIN silver.visits c ON c.zone = a.zone AND a.zone = b.amount GROUP BY a.zone",
    "an optional table that steers a later join": "SELECT r.rate AS tier, sum(o.amount) AS s FROM silver.pays o LEFT JOIN silver.trips v ON v.id = o.trip JOIN silver.zones r ON r.region = coalesce(v.cat, o.cat) GROUP BY r.rate",
    "keys from both sides": "SELECT t.cat, p.zone, count(*) AS n FROM silver.trips t JOIN silver.pays p ON p.trip = t.id GROUP BY t.cat, p.zone",
    "an optional table that steers a filter": "SELECT o.zone, count(*) AS n FROM silver.pays o LEFT JOIN silver.trips v ON v.id = o.trip WHERE coalesce(v.qty, 1) = 1 GROUP BY o.zone",
    "an equality by way of a table that is not there": "WITH x AS (SELECT zone AS x FROM silver.visits) SELECT fare FROM silver.visits AS q LEFT ANTI JOIN x b ON b.x = qty AND q.fare = b.x JOIN x v ON v.x = q.qty",
    "an equality by way of an optional table": "SELECT q.zone, count(*) AS n FROM silver.trips q LEFT JOIN silver.visits b ON b.qty = q.qty AND b.qty = q.zone JOIN silver.pays v ON v.zone = q.qty GROUP BY q.zone",
    "a lookup that a subquery reads twice": "SELECT t.zone, t.cat, max(l.x) AS m FROM silver.trips t JOIN (SELECT z.zone, y.rate AS x FROM silver.zones z CROSS JOIN silver.zones y) l ON l.zone = t.zone GROUP BY t.zone, t.cat",
    # names that mean two things
    "an alias that a subquery hides": "SELECT q.zone, count(*) AS n FROM (SELECT zone FROM silver.trips) q WHERE q.zone IN (SELECT q.zone FROM silver.zones q) GROUP BY q.zone",
    "an alias that a scalar subquery hides": "SELECT c.zone, (SELECT max(c.qty) AS v FROM silver.visits AS c) AS k FROM (SELECT zone FROM silver.trips AS q) c",
    "an alias that a joined subquery hides": "SELECT a.qty, t.m FROM (SELECT qty FROM silver.visits) a JOIN (SELECT flag AS m FROM silver.trips AS a) t ON true",
    "an expression that is read twice": "WITH T AS (SELECT t.zone, b.rate FROM silver.zones AS b JOIN silver.zones AS t ON t.location = b.zone) SELECT t.zone, count(*) AS n FROM T t JOIN T a ON a.rate = t.zone GROUP BY t.zone",
    "an expression that nobody reads": "WITH unread AS (SELECT zone FROM silver.visits) SELECT zone, max(fare) AS m FROM silver.trips GROUP BY zone",
    # aggregates
    "distinct values": "SELECT zone, count(DISTINCT cat) AS c, sum(DISTINCT qty) AS q FROM silver.visits GROUP BY zone",
    "mean": "SELECT mean(qty) AS m FROM silver.trips",
    "mean of groups": "SELECT zone, mean(qty) AS m FROM silver.trips GROUP BY ALL",
    "std of groups": "SELECT zone, std(qty) AS s FROM silver.trips GROUP BY ALL",
    "every and some": "SELECT zone, every(flag) AS e, some(flag) AS o FROM silver.trips GROUP BY ALL",
    "try_sum and try_avg": "SELECT zone, try_sum(qty) AS t, try_avg(qty) AS a FROM silver.trips GROUP BY ALL",
    "the middle, from above": "SELECT zone, percentile_cont(0.25) WITHIN GROUP (ORDER BY qty DESC) AS p FROM silver.trips GROUP BY zone",
    "the middle": "SELECT cat, percentile_cont(0.5) WITHIN GROUP (ORDER BY trip) AS p, percentile_disc(0.5) WITHIN GROUP (ORDER BY pay DESC) AS d FROM silver.pays GROUP BY cat",
}


def _trip(number: int, zone: int | None, cat: str | None = "a", flag: bool | None = True) -> tuple[Any, ...]:
    return (number, zone, cat, Decimal("1.00"), 1, 1.0, flag, None, None)


def _pay(number: int, trip: int, zone: int) -> tuple[Any, ...]:
    return (number, trip, zone, Decimal("5.00"), "a", True)


def _history(*states: State) -> History:
    return History(states)


_TIERS = ((1, "a", 1, 1), (2, "b", 2, 2))
# Changes that random histories seldom make at the right moment, for queries of the list.
SCENARIOS: dict[str, tuple[str, History]] = {
    "the table that steers comes": (
        "an optional table that steers a later join",
        _history(
            {"silver.pays": (_pay(1, 1, 1),), "silver.zones": _TIERS},
            {"silver.pays": (_pay(1, 1, 1),), "silver.zones": _TIERS, "silver.trips": (_trip(1, 2, "b"),)},
        ),
    ),
    "the table that steers goes": (
        "an optional table that steers a later join",
        _history(
            {"silver.pays": (_pay(1, 1, 1),), "silver.zones": _TIERS, "silver.trips": (_trip(1, 2, "b"),)},
            {"silver.pays": (_pay(1, 1, 1),), "silver.zones": _TIERS},
        ),
    ),
    "both sides of a join go at once": (
        "keys from both sides",
        _history({"silver.trips": (_trip(1, 1),), "silver.pays": (_pay(1, 1, 2),)}, {}),
    ),
    "an ON that held holds no more": (
        "an ON that is not about the joined table",
        _history(
            {"silver.trips": (_trip(1, 5),), "silver.pays": (_pay(1, 1, 1),), "silver.visits": ((5, "a", 1, None),)},
            {"silver.trips": (_trip(1, 5),), "silver.visits": ((5, "a", 1, None),)},
        ),
    ),
    "a row comes that only an absent table would lead to the key": (
        "an equality by way of a table that is not there",
        _history(
            {"silver.visits": ((-1, "b", 4, Decimal("0.00")),)},
            {"silver.visits": ((-1, "b", 4, Decimal("0.00")), (4, "a", 0, Decimal("-1.50")))},
        ),
    ),
    "the lookup is narrowed for one of its readers": (
        "a lookup that a subquery reads twice",
        _history(
            {"silver.trips": (_trip(1, 1),), "silver.zones": _TIERS},
            {"silver.trips": (_trip(1, 1), _trip(2, 1)), "silver.zones": _TIERS},
        ),
    ),
    "the group of nulls changes alone": (
        "a key is NOT a flag",
        _history({"silver.trips": ()}, {"silver.trips": (_trip(1, 1, flag=None),)}),
    ),
}

# The clock is no constant: such a query is never followed by its changes alone.
CLOCKS = {
    "today": "SELECT zone, count(*) AS n FROM silver.trips WHERE day < DATE 'today' GROUP BY zone",
    "now": "SELECT id, TIMESTAMP 'now' AS t FROM silver.trips",
    "yesterday": "SELECT zone, max(qty) AS m FROM silver.trips WHERE seen > CAST('yesterday' AS TIMESTAMP) GROUP BY zone",
    "tomorrow, in capitals": "SELECT id FROM silver.trips WHERE day = date 'TOMORROW'",
    "now, without a zone": "SELECT id, timestamp_ntz 'now' AS t FROM silver.trips",
}

# Valid Spark SQL that DuckDB has no words for: planned in the unit tier, run in the Spark tier.
SPARK_ONLY: dict[str, str] = {
    "a comment that goes on in the next line": "SELECT zone, max(qty) AS m FROM silver.trips WHERE id > 0 -- see C:\\temp\\\n AND length(cat) < 2\n GROUP BY zone",
    "a window by its own name": "SELECT window(cast(seen AS timestamp), '1 day') AS window, count(*) AS n FROM silver.trips GROUP BY window(cast(seen AS timestamp), '1 day')",
    "a window that is a column": "SELECT id, window(cast(seen AS timestamp), '1 day') AS window FROM silver.trips",
    "a number as text": "SELECT to_char(fare, '999.99') AS c, count(*) AS n FROM silver.trips GROUP BY 1",
    "a number as text, row by row": "SELECT id, to_char(fare, '999.99') AS c FROM silver.trips",
    "a document": "SELECT id, to_json(parse_json(concat('{\"A\":', id, '}'))) AS j FROM silver.trips",
    "the days since the epoch": "SELECT id, unix_date(day) AS d FROM silver.trips",
    "a tuple of a document": "SELECT count(*) AS n FROM (SELECT json_tuple(concat('{\"A\":', id, '}'), 'A', 'b') FROM silver.trips) q",
    "a generator with two columns": "SELECT count(*) AS n, sum(col0) AS s FROM (SELECT stack(2, qty, zone, id, 1) FROM silver.trips) q",
    "a text like any of some": "SELECT id, cat LIKE ANY ('a%', 'o%') AS l FROM silver.trips",
    "groups of texts like any of some": "SELECT cat LIKE ANY ('a%', 'o%') AS l, count(*) AS n FROM silver.trips GROUP BY cat LIKE ANY ('a%', 'o%')",
    "a lateral view": "SELECT v, count(*) AS n FROM silver.trips LATERAL VIEW explode(array(zone, qty)) x AS v GROUP BY v",
    "sessions": "SELECT cat, session_window.start AS s, count(*) AS n FROM silver.trips GROUP BY cat, session_window(seen, '5 hours')",
    "hopping windows": "SELECT window.start AS s, sum(qty) AS q FROM silver.trips GROUP BY window(seen, '2 hours', '1 hour')",
    "a struct with names": "SELECT zone, struct(cat AS Cat, 1 AS One) AS s, max(qty) AS m FROM silver.trips GROUP BY zone, struct(cat AS Cat, 1 AS One)",
    "a named struct of a group": "SELECT zone, named_struct('Total', sum(qty), 'N', count(*)) AS s FROM silver.trips GROUP BY zone",
}
