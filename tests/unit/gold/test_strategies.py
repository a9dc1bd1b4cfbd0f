# ruff: noqa: E501 - a query reads best in one piece
"""Which strategy a query gets, what the plan says about it, and what is refused."""

from __future__ import annotations

import re

import pytest

from lodestream.errors import DeclarationError
from lodestream.pipeline.gold import InputInfo, analyse, query_inputs
from lodestream.pipeline.gold.rows import rows_fold_sql
from lodestream.pipeline.gold.statement import refuse_catalogs

TRIPS = InputInfo(
    "silver.trips",
    {
        "Trip_Id": "string",
        "seen": "timestamp",
        "zone": "int",
        "cat": "string",
        "fare": "decimal(10,2)",
        "wide": "decimal(38,10)",
        "dist": "double",
        "big": "bigint",
        "tags": "map<string,string>",
        "unknown": None,
    },
    keys=("Trip_Id",),
    partition_by=("seen",),
)
PAYS = InputInfo("silver.pays", {"trip": "string", "zone": "string", "amount": "decimal(8,2)"})
ZONES = InputInfo("silver.zones", {"location": "int", "borough": "string"}, lookup=True)
BLANK = InputInfo("silver.blank")
INPUTS = (TRIPS, PAYS, ZONES, BLANK)


@pytest.mark.parametrize(
    ("sql", "strategy", "because"),
    [
        ("SELECT zone, sum(fare) AS s FROM silver.trips GROUP BY zone", "delta", "a sum over the rows"),
        ("SELECT zone, sum(big) AS s FROM silver.trips GROUP BY 1 ORDER BY 1", "delta", "a sum over the rows"),
        ("SELECT cat COLLATE UTF8_LCASE AS c, count(*) AS n FROM silver.trips GROUP BY 1", "full", "COLLATE calls"),
        ("SELECT zone, max(collate(cat, 'UNICODE_CI')) AS c FROM silver.trips GROUP BY zone", "full", "COLLATE calls"),
        ("SELECT zone, count(*) AS `collate` FROM silver.trips WHERE cat <> 'collate' GROUP BY zone", "delta", "a sum"),
        ("SELECT Trip_Id, fare FROM silver.trips WHERE zone = 1", "delta", "passes through"),
        ("SELECT Trip_Id, cat LIKE ANY ('a%', 'b%') AS l FROM silver.trips", "delta", "passes through"),
        ("SELECT any(zone = 1) AS l FROM silver.trips", "full", "any(zone = 1) is not a sum"),
        ("SELECT r.id, t.zone FROM range(4) r LEFT JOIN silver.trips t ON t.zone = r.id", "full", "a function is read"),
        ("SELECT zone, id FROM silver.trips, range(3)", "full", "a function is read as a table"),
        ("SELECT inline(array(struct(zone, fare))) FROM silver.trips", "full", "names their columns"),
        ("TABLE silver.trips", "full", "only Spark can read"),
        ("SELECT zone FROM silver.trips UNION ALL TABLE silver.trips", "full", "only Spark can read"),
        ("SELECT lode.silver.trips.zone AS z FROM lode.silver.trips", "full", "CATALOG"),
        ("SELECT zone, sum(dist) AS s FROM silver.trips GROUP BY zone", "affected", "floating-point"),
        ("SELECT zone, avg(cast(dist AS float)) AS s FROM silver.trips GROUP BY zone", "affected", "floating-point"),
        ("SELECT zone, sum(unknown) AS s FROM silver.trips GROUP BY zone", "affected", "type of"),
        ("SELECT zone, sum(wide) AS s FROM silver.trips GROUP BY zone", "affected", "too wide"),
        ("SELECT zone, avg(wide) AS s FROM silver.trips GROUP BY zone", "affected", "too wide"),
        ("SELECT zone, max(fare) AS s FROM silver.trips GROUP BY zone", "affected", "not a sum"),
        ("SELECT zone, mode(cat) AS s FROM silver.trips GROUP BY zone", "affected", "not a sum"),
        ("SELECT zone, first(cat) AS s FROM silver.trips GROUP BY zone", "affected", "not a sum"),
        ("SELECT zone, stddev(fare) AS s FROM silver.trips GROUP BY zone", "affected", "not a sum"),
        ("SELECT zone, collect_list(cat) AS s FROM silver.trips GROUP BY zone", "affected", "not a sum"),
        ("SELECT zone, sum(DISTINCT fare) AS s FROM silver.trips GROUP BY zone", "affected", "not a sum"),
        ("SELECT zone, my_total(fare) AS s FROM silver.trips GROUP BY zone", "full", "my_total"),
        ("SELECT zone, count(my_flag(cat)) AS s FROM silver.trips GROUP BY zone", "full", "my_flag"),
        ("SELECT Trip_Id, tags FROM silver.trips", "affected", "cannot be compared"),
        (
            "SELECT zone, rank() OVER (PARTITION BY zone ORDER BY fare) AS r FROM silver.trips",
            "affected",
            "neighbouring",
        ),
        ("SELECT zone, fare, rank() OVER (ORDER BY fare) AS r FROM silver.trips", "full", "runs over all rows"),
        ("SELECT zone, sum(sum(fare)) OVER (ORDER BY zone) AS r FROM silver.trips GROUP BY zone", "full", "all rows"),
        ("SELECT max(fare) AS m FROM silver.trips", "full", "made of all rows"),
        ("SELECT max(fare) AS m FROM silver.trips GROUP BY zone", "full", "no column tells"),
        ("SELECT zone, count(*) AS n FROM silver.trips GROUP BY zone LIMIT 3", "full", "LIMIT"),
        ("SELECT zone, count(*) AS n FROM silver.trips WHERE seen > now() GROUP BY zone", "full", "another time"),
        ("SELECT zone, count(*) AS n, rand() AS r FROM silver.trips GROUP BY zone", "full", "another time"),
        ("SELECT zone, localtimestamp() AS t FROM silver.trips", "full", "another time"),
        ("SELECT zone, shuffle(array(zone, 1)) AS a FROM silver.trips", "full", "another time"),
        ("SELECT zone, count(*) AS n FROM silver.trips GROUP BY ROLLUP(zone)", "full", "several levels"),
        (
            "SELECT * FROM (SELECT zone, cat, fare FROM silver.trips) PIVOT (sum(fare) FOR cat IN ('a'))",
            "full",
            "PIVOT",
        ),
        ("SELECT * FROM silver.trips UNPIVOT (amount FOR kind IN (fare, wide))", "full", "PIVOT"),
        ("SELECT fare FROM silver.trips NATURAL JOIN silver.pays", "full", "NATURAL JOIN"),
        ("WITH RECURSIVE a AS (SELECT zone FROM silver.trips) SELECT zone FROM a", "full", "RECURSIVE"),
        ("SELECT TRANSFORM(zone) USING 'cat' AS (a) FROM silver.trips", "full", "another program"),
        (
            "SELECT /*+ BROADCAST(z) */ t.cat, z.borough FROM silver.trips t JOIN silver.zones z ON z.location = t.zone",
            "delta",
            "one row",
        ),
        ("SELECT zone, count(*) AS n FROM silver.blank GROUP BY zone", "full", "not known yet"),
        ("SELECT zone FROM silver.trips EXCEPT SELECT location AS zone FROM silver.zones", "full", "as wholes"),
        (
            "SELECT session_window.start AS s, count(*) AS n FROM silver.trips GROUP BY session_window(seen, '5 minutes')",
            "full",
            "session",
        ),
        (
            "SELECT t.zone, count(*) AS n FROM silver.trips t RIGHT JOIN silver.pays p ON p.trip = t.Trip_Id GROUP BY t.zone",
            "full",
            "RIGHT JOIN",
        ),
        (
            "SELECT zone, count(*) AS n FROM silver.trips WHERE fare > (SELECT avg(fare) FROM silver.trips) GROUP BY zone",
            "full",
            "subquery of an expression",
        ),
        # 1 = '01' is true, but a changed '01' says nothing about the key 1: types must match for keys to be followed.
        (
            "SELECT p.zone, t.zone AS other, count(*) AS n FROM silver.trips t LEFT JOIN silver.pays p ON p.zone = t.zone "
            "GROUP BY p.zone, t.zone",
            "affected",
            "joined as streams",
        ),
        (
            "SELECT p.zone, max(p.amount) AS n FROM silver.trips t LEFT JOIN silver.pays p ON p.trip = t.Trip_Id "
            "GROUP BY p.zone",
            "full",
            "a match that comes or goes moves rows",
        ),
    ],
)
def test_the_strategy_and_its_reason(sql: str, strategy: str, because: str) -> None:
    plan = analyse(sql, INPUTS)
    assert (plan.strategy, because in plan.reason) == (strategy, True), plan.reason


def test_a_sum_of_doubles_says_what_would_make_it_cheaper() -> None:
    plan = analyse("SELECT zone, avg(dist) AS d FROM silver.trips GROUP BY zone", INPUTS)
    assert plan.cheaper == "write avg(cast(dist as decimal(18,6))) if 12 digits before and 6 after the point do"


def test_a_forced_strategy_that_is_not_provable_is_an_error_with_the_reason() -> None:
    sql = "SELECT zone, max(fare) AS m FROM silver.trips GROUP BY zone"
    with pytest.raises(DeclarationError) as caught:
        analyse(sql, INPUTS, force="delta")
    assert caught.value.why == "max(fare) is not a sum over its rows"
    assert analyse(sql, INPUTS, force="affected").strategy == "affected"
    assert analyse(sql, INPUTS, force="full").full_sql == sql.replace(
        "silver.trips", "_lode_now_silver_trips AS `trips`"
    )


def test_a_slower_strategy_can_be_forced() -> None:
    plan = analyse("SELECT zone, count(*) AS n FROM silver.trips GROUP BY zone", INPUTS, force="affected")
    assert (plan.strategy, plan.keys, plan.state_columns) == ("affected", ("zone",), ())


def test_the_state_has_exact_types_and_lives_in_one_hidden_column() -> None:
    plan = analyse("SELECT zone, avg(fare) AS a, sum(big) AS b FROM silver.trips GROUP BY zone", INPUTS)
    assert plan.state_home == "column"
    assert plan.state_ddl() == "STRUCT<n: bigint, s1: decimal(20,2), c2: bigint, s3: decimal(30,0), c4: bigint>"


def test_groups_hidden_by_having_keep_their_state_in_a_sibling() -> None:
    plan = analyse("SELECT zone, count(*) AS n FROM silver.trips GROUP BY zone HAVING count(*) > 1", INPUTS)
    assert (plan.strategy, plan.state_home) == ("delta", "table")
    assert [column.name for column in plan.state_columns] == ["k1", "n"]


def test_output_columns_keep_the_spelling_of_the_query() -> None:
    plan = analyse("SELECT trip_id AS TripId, Zone, fare FROM silver.trips", INPUTS)
    assert plan.columns == ("TripId", "Zone", "fare")
    assert plan.keys == ("TripId",)


def test_a_star_gives_the_columns_of_the_input() -> None:
    plan = analyse("SELECT * FROM silver.zones", INPUTS)
    assert plan.columns == ("location", "borough")


def test_order_by_is_ignored_with_a_note() -> None:
    plan = analyse("SELECT zone, count(*) AS n FROM silver.trips GROUP BY zone ORDER BY n DESC", INPUTS)
    assert plan.notes == ("ORDER BY is ignored: a table has no order, its readers do",)


def test_the_keys_of_a_changed_lookup_are_found_through_the_join() -> None:
    sql = "SELECT t.cat, count(z.borough) AS n FROM silver.trips t LEFT JOIN silver.zones z ON z.location = t.zone GROUP BY t.cat"
    plan = analyse(sql, INPUTS)
    assert (plan.strategy, plan.on_lookup_change) == ("delta", {"silver.zones": "affected"})
    assert "_lode_feed_silver_zones" in plan.affected_sql["silver.zones"]


def test_a_lookup_that_gives_an_optional_key_means_a_full_refresh_when_it_changes() -> None:
    sql = "SELECT z.borough, count(*) AS n FROM silver.trips t LEFT JOIN silver.zones z ON z.location = t.zone GROUP BY z.borough"
    assert analyse(sql, INPUTS).on_lookup_change == {"silver.zones": "full"}


def test_a_table_read_twice_is_not_pruned_for_one_of_its_readers() -> None:
    once = "SELECT zone, max(fare) AS m FROM silver.trips GROUP BY zone"
    twice = "SELECT a.zone, count(*) AS n FROM silver.trips a JOIN silver.trips b ON a.zone = b.zone GROUP BY a.zone"
    assert analyse(once, INPUTS).prune == {"silver.trips": (("zone", "zone"),)}
    assert analyse(twice, INPUTS).prune == {}


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT count(*) FROM silver.trips", "has no name: COUNT(*)"),
        ("SELECT 1 AS x FROM silver.nowhere", "reads silver.nowhere"),
        ("SELECT zone, cat AS Zone FROM silver.trips", "two columns named Zone"),
        ("SELECT t.*, z.location AS zone FROM silver.trips t JOIN silver.zones z ON true", "two columns named zone"),
        ("SELECT zone FROM silver.trips VERSION AS OF 3", "as it was"),
        ("SELECT zone FROM silver.trips TABLESAMPLE (10 PERCENT)", "a sample of silver.trips"),
        ("SELECT zone FROM silver.trips JOIN identifier('silver.zones') z USING (zone)", "IDENTIFIER"),
        ("WITH a AS (SELECT * FROM identifier('silver.' || 'trips')) SELECT zone FROM a", "IDENTIFIER"),
        ("SELECT zone FROM (SELECT zone FROM silver.trips) TABLESAMPLE (5 ROWS)", "a sample of a subquery"),
        ("SELECT zone FROM (SELECT zone FROM silver.trips) TABLESAMPLE (5 ROWS) x", "a sample of its input"),
        ("WITH a AS (SELECT zone FROM silver.trips) SELECT zone FROM a TABLESAMPLE (5 ROWS)", "a sample of a"),
        ("SELECT FROM WHERE", "cannot be parsed"),
        ("DELETE FROM silver.trips", "exactly one SELECT"),
        ("SELECT zone FROM silver.trips; SELECT 1", "exactly one SELECT"),
    ],
)
def test_what_cannot_be_a_table_is_an_error_that_says_so(sql: str, what: str) -> None:
    with pytest.raises(DeclarationError, match=re.escape(what)) as caught:
        analyse(sql, INPUTS)
    assert caught.value.fix


def test_the_inputs_of_a_query_are_its_tables_but_not_its_common_table_expressions() -> None:
    sql = (
        "WITH a AS (SELECT * FROM silver.trips) SELECT a.* FROM a JOIN gold.days d ON true JOIN silver.trips t ON true"
    )
    assert set(query_inputs(sql)) == {"silver.trips", "gold.days"}


def test_a_full_refresh_runs_the_text_as_written() -> None:
    sql = "SELECT /* kept */ silver.trips.zone, window(seen, '5 minutes') AS w FROM silver.trips LIMIT 5 -- end"
    plan = analyse(sql, INPUTS)
    expected = "SELECT /* kept */ trips.zone, window(seen, '5 minutes') AS w FROM _lode_now_silver_trips AS `trips` LIMIT 5 -- end"
    assert plan.full_sql == expected


def test_rows_with_floating_point_numbers_are_compared_by_the_sign_of_their_zeros() -> None:
    plain = rows_fold_sql(["a`b", "x"], {"a`b": "string", "x": "int"})
    signed = rows_fold_sql(["a`b", "x", "s"], {"a`b": "string", "x": "double", "s": "struct<f:float>"})
    assert "GROUP BY `a``b`, `x` HAVING" in plain
    assert "GROUP BY `a``b`, `x`, `s`, power(`x`, -1) < 0, CAST(`s` AS STRING) HAVING" in signed
    assert "SELECT `a``b`, FIRST(`x`) AS `x`, FIRST(`s`) AS `s`, SUM(" in signed


def test_a_table_as_a_whole_and_one_of_a_named_catalog_are_inputs() -> None:
    sql = "SELECT zone FROM silver.trips UNION ALL (TABLE lode.silver.pays)"
    assert query_inputs(sql) == ("silver.trips", "silver.pays")
    assert "(TABLE _lode_now_silver_pays)" in analyse(sql, INPUTS).full_sql
    assert analyse("TABLE silver.trips", INPUTS).full_sql == "TABLE _lode_now_silver_trips"
    named = analyse("SELECT lode.silver.trips.zone AS z FROM lode.silver.trips", INPUTS)
    assert named.full_sql == "SELECT trips.zone AS z FROM _lode_now_silver_trips AS `trips`"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT zone FROM other.silver.trips",
        "SELECT zone FROM silver.pays WHERE zone IN (SELECT zone FROM Other.silver.trips)",
        "SELECT zone FROM silver.pays UNION ALL (TABLE `other`.silver.trips)",
    ],
)
def test_a_table_of_another_catalog_is_never_taken_for_ours(sql: str) -> None:
    refuse_catalogs(sql.replace("other", "lode").replace("Other", "LODE"), "lode")
    with pytest.raises(DeclarationError, match="a table of another catalog"):
        refuse_catalogs(sql, "lode")
