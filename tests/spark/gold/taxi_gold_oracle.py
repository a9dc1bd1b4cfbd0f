# ruff: noqa: E501 - a query reads best in one piece
"""The taxi Gold tables recomputed by DuckDB from its own silver tables: sums there, divisions here, in decimals."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

Rows = list[dict[str, Any]]
# Averages that are shown as whole numbers.
_WHOLE = ("avg_trips_per_period",)
_SIX = "CAST({0} AS DECIMAL(18, 6))"


def _avg(name: str, column: str) -> str:
    """An average travels as its sum and its count."""
    return f"sum({_SIX.format(column)}) AS {name}__sum, count({column}) AS {name}__count"


_PER_TRIP = ", ".join(
    _avg(name, column)
    for name, column in {
        "avg_trip_distance": "trip_distance_miles",
        "avg_trip_duration_min": "trip_duration_minutes",
        "avg_trip_revenue": "total_amount",
    }.items()
)
TABLES = {
    "daily_summary": f"""SELECT pickup_date, pickup_day_of_week, is_weekend, count(*) AS total_trips, sum(passenger_count) AS total_passengers,
        {_PER_TRIP}, {_avg("avg_speed_mph", "avg_speed_mph")}, {_avg("avg_tip_percentage", "tip_percentage")},
        sum(fare_amount) AS total_fare_revenue, sum(tip_amount) AS total_tip_revenue, sum(total_amount) AS total_revenue,
        count(*) FILTER (WHERE payment_type_id = 1) AS credit_card_trips, count(*) FILTER (WHERE payment_type_id = 2) AS cash_trips
        FROM held GROUP BY ALL""",
    "hourly_patterns": f"""SELECT pickup_date, pickup_hour, pickup_day_of_week, is_weekend, count(*) AS total_trips, {_avg("avg_distance", "trip_distance_miles")},
        {_avg("avg_duration_min", "trip_duration_minutes")}, sum(total_amount) AS total_revenue, {_avg("avg_revenue", "total_amount")} FROM held GROUP BY ALL""",
    "fct_trips": """SELECT m.*, p.borough AS pickup_borough, p.zone_name AS pickup_zone, d.borough AS dropoff_borough, d.zone_name AS dropoff_zone FROM held m LEFT JOIN zones p ON p.location_id = m.pickup_location_id
        LEFT JOIN zones d ON d.location_id = m.dropoff_location_id""",
    "dim_dates": """SELECT DISTINCT pickup_date AS date_key, year(pickup_date) AS year, month(pickup_date) AS month, day(pickup_date) AS day_of_month,
        dayofweek(pickup_date) AS day_of_week_num, dayname(pickup_date) AS day_of_week_name, monthname(pickup_date) AS month_name,
        CAST(strftime(pickup_date, '%V') AS INTEGER) AS week_of_year, is_weekend, strftime(pickup_date, '%m-%d') IN ('01-01', '01-15') AS is_holiday FROM held""",
    "dim_locations": "SELECT location_id, borough, zone_name, service_zone FROM zones",
    "dim_payment_types": "SELECT * FROM payment_types",
    "mart_daily_revenue": """SELECT d.date_key, d.day_of_week_name, d.is_weekend, d.is_holiday, d.week_of_year, s.total_trips, s.total_passengers, s.total_fare_revenue,
        s.total_tip_revenue, s.total_revenue, s.avg_trip_revenue, s.avg_tip_percentage, s.credit_card_trips, s.cash_trips, s.avg_trip_distance,
        s.avg_trip_duration_min,
        (SELECT sum(e.total_revenue) FROM daily_summary e WHERE e.pickup_date <= s.pickup_date) AS cumulative_revenue,
        s.total_revenue - (SELECT max_by(e.total_revenue, e.pickup_date) FROM daily_summary e WHERE e.pickup_date < s.pickup_date) AS revenue_change_vs_prior_day
        FROM daily_summary s JOIN dim_dates d ON d.date_key = s.pickup_date""",
    "mart_hourly_demand": f"""SELECT pickup_hour, is_weekend, count(DISTINCT pickup_date) AS days_observed, {_avg("avg_trips_per_period", "total_trips")},
        {_avg("avg_distance", "avg_distance")}, {_avg("avg_duration_min", "avg_duration_min")}, {_avg("avg_revenue_per_period", "total_revenue")},
        sum(total_trips) AS total_trips_all_days FROM hourly_patterns GROUP BY ALL""",
    "mart_location_performance": f"""WITH zone AS (SELECT pickup_location_id AS id, count(*) AS total_pickups, sum(total_amount) AS total_revenue,
            {_avg("avg_trip_distance", "trip_distance_miles")}, {_avg("avg_trip_duration_min", "trip_duration_minutes")},
            {_avg("avg_revenue_per_trip", "total_amount")}, {_avg("avg_tip_pct", "tip_percentage")}, {_avg("avg_passengers", "passenger_count")}
            FROM held GROUP BY ALL),
        ends AS (SELECT pickup_location_id AS id, dropoff_location_id AS place, row_number() OVER (PARTITION BY pickup_location_id ORDER BY count(*) DESC, dropoff_location_id) AS r
            FROM held WHERE dropoff_location_id IS NOT NULL GROUP BY pickup_location_id, dropoff_location_id),
        hours AS (SELECT pickup_location_id AS id, pickup_hour, row_number() OVER (PARTITION BY pickup_location_id ORDER BY count(*) DESC, pickup_hour) AS r
            FROM held GROUP BY pickup_location_id, pickup_hour)
        SELECT z.* EXCLUDE (id), z.id AS pickup_location_id, p.borough AS pickup_borough, p.zone_name AS pickup_zone, e.zone_name AS most_common_dropoff_zone,
            h.pickup_hour AS peak_pickup_hour FROM zone z
        LEFT JOIN ends ON ends.id IS NOT DISTINCT FROM z.id AND ends.r = 1 LEFT JOIN hours h ON h.id IS NOT DISTINCT FROM z.id AND h.r = 1
        LEFT JOIN zones p ON p.location_id = z.id LEFT JOIN zones e ON e.location_id = ends.place""",
    "anomaly_daily_trips": """WITH y AS (SELECT avg(total_trips) AS mt, stddev_samp(total_trips) AS st, avg(total_revenue::DOUBLE) AS mr, stddev_samp(total_revenue::DOUBLE) AS sr,
            quantile_cont(total_trips::DOUBLE, 0.25) AS t1, quantile_cont(total_trips::DOUBLE, 0.75) AS t3,
            quantile_cont(total_revenue::DOUBLE, 0.25) AS r1, quantile_cont(total_revenue::DOUBLE, 0.75) AS r3 FROM daily_summary),
        s AS (SELECT pickup_date, total_trips, total_revenue, round((total_trips - mt) / nullif(st, 0), 2) AS trips_z_score,
            round((total_revenue::DOUBLE - mr) / nullif(sr, 0), 2) AS revenue_z_score,
            total_trips < t1 - 1.5 * (t3 - t1) OR total_trips > t3 + 1.5 * (t3 - t1) AS is_trips_outlier,
            total_revenue::DOUBLE < r1 - 1.5 * (r3 - r1) OR total_revenue::DOUBLE > r3 + 1.5 * (r3 - r1) AS is_revenue_outlier FROM daily_summary, y)
        SELECT *, coalesce(abs(trips_z_score) > 2, false) OR coalesce(abs(revenue_z_score) > 2, false) OR is_trips_outlier OR is_revenue_outlier AS is_anomaly FROM s""",
}


def recompute(db: duckdb.DuckDBPyConnection, reference: Path) -> dict[str, Rows]:
    """Every table in the order of its inputs; each is there for the next."""
    db.execute("CREATE TABLE held AS SELECT * FROM trip_metrics")
    for name in ("zones", "payment_types"):
        db.execute(f"CREATE TABLE {name} AS SELECT * FROM read_csv('{reference / name}.csv')")
    found = {}
    for name, sql in TABLES.items():
        rows = db.execute(sql).to_arrow_table().to_pylist()
        found[name] = [_divided(row) for row in rows]
        if any("__sum" in column for column in rows[0]):
            made = pa.Table.from_pylist(found[name], schema=_schema(db, sql))  # noqa: F841 (DuckDB finds it by name)
            db.execute(f"CREATE TABLE {name} AS SELECT * FROM made")
        else:
            db.execute(f"CREATE TABLE {name} AS {sql}")
    return found


def _divided(row: dict[str, Any]) -> dict[str, Any]:
    """Averages of decimal(18,6) as Spark has them: decimal(22,10), half up, then half up to 2 places."""
    result = {name: value for name, value in row.items() if not name.endswith(("__sum", "__count"))}
    for name in (name.removesuffix("__sum") for name in row if name.endswith("__sum")):
        total, count = row[f"{name}__sum"], row[f"{name}__count"]
        exact = (total / count).quantize(Decimal("1e-10"), ROUND_HALF_UP) if count else None
        places = Decimal(1) if name in _WHOLE else Decimal("0.01")
        result[name] = None if exact is None else exact.quantize(places, ROUND_HALF_UP)
    return result


def _schema(db: duckdb.DuckDBPyConnection, sql: str) -> pa.Schema:
    given = db.execute(f"SELECT * FROM ({sql}) LIMIT 0").to_arrow_table().schema
    plain = [field for field in given if not field.name.endswith(("__sum", "__count"))]
    averages = [pa.field(f.name.removesuffix("__sum"), pa.decimal128(16, 2)) for f in given if f.name.endswith("__sum")]
    return pa.schema([*plain, *averages])


# The models as they were published for dbt on DuckDB: averages and shares are doubles, rounded once at the end.
_PUBLISHED_TRIPS = "held.* REPLACE (CASE WHEN fare_amount > 0 THEN 100 * tip_amount::DOUBLE / fare_amount::DOUBLE END AS tip_percentage)"
PUBLISHED = {
    "daily_summary": f"""SELECT pickup_date, pickup_day_of_week, is_weekend, count(*) AS total_trips, sum(passenger_count) AS total_passengers,
        round(avg(trip_distance_miles), 2) AS avg_trip_distance, round(avg(trip_duration_minutes), 2) AS avg_trip_duration_min,
        round(avg(avg_speed_mph), 2) AS avg_speed_mph, sum(fare_amount) AS total_fare_revenue, sum(tip_amount) AS total_tip_revenue,
        sum(total_amount) AS total_revenue, round(avg(total_amount), 2) AS avg_trip_revenue, round(avg(tip_percentage), 2) AS avg_tip_percentage,
        count_if(payment_type_id = 1) AS credit_card_trips, count_if(payment_type_id = 2) AS cash_trips
        FROM (SELECT {_PUBLISHED_TRIPS} FROM held) GROUP BY ALL""",
    "hourly_patterns": """SELECT pickup_date, pickup_hour, pickup_day_of_week, is_weekend, count(*) AS total_trips, round(avg(trip_distance_miles), 2) AS avg_distance,
        round(avg(trip_duration_minutes), 2) AS avg_duration_min, sum(total_amount) AS total_revenue, round(avg(total_amount), 2) AS avg_revenue
        FROM held GROUP BY ALL""",
    "mart_daily_revenue": """SELECT d.date_key, d.day_of_week_name, d.is_weekend, d.is_holiday, d.week_of_year, s.* EXCLUDE (pickup_date, pickup_day_of_week, is_weekend, avg_speed_mph),
        sum(s.total_revenue) OVER (ORDER BY d.date_key) AS cumulative_revenue,
        s.total_revenue - lag(s.total_revenue) OVER (ORDER BY d.date_key) AS revenue_change_vs_prior_day
        FROM published_daily_summary s JOIN dim_dates d ON d.date_key = s.pickup_date""",
    "mart_hourly_demand": """SELECT pickup_hour, is_weekend, count(*) AS days_observed, round(avg(total_trips), 0) AS avg_trips_per_period,
        round(avg(avg_distance), 2) AS avg_distance, round(avg(avg_duration_min), 2) AS avg_duration_min,
        round(avg(total_revenue), 2) AS avg_revenue_per_period, sum(total_trips) AS total_trips_all_days
        FROM published_hourly_patterns GROUP BY pickup_hour, is_weekend""",
    "mart_location_performance": f"""SELECT pickup_location_id, pickup_borough, pickup_zone, count(*) AS total_pickups, round(avg(trip_distance_miles), 2) AS avg_trip_distance,
        round(avg(trip_duration_minutes), 2) AS avg_trip_duration_min, sum(total_amount) AS total_revenue, round(avg(total_amount), 2) AS avg_revenue_per_trip,
        round(avg(tip_percentage), 2) AS avg_tip_pct, round(avg(passenger_count), 2) AS avg_passengers,
        histogram(dropoff_zone) AS most_common_dropoff_zone, histogram(pickup_hour) AS peak_pickup_hour
        FROM (SELECT {_PUBLISHED_TRIPS} FROM fct_trips AS held) WHERE pickup_zone IS NOT NULL GROUP BY ALL""",
}
_KEYS = {
    "daily_summary": ("pickup_date",),
    "hourly_patterns": ("pickup_date", "pickup_hour"),
    "mart_daily_revenue": ("date_key",),
    "mart_hourly_demand": ("pickup_hour", "is_weekend"),
    "mart_location_performance": ("pickup_location_id",),
}
_LAST_DIGIT = Decimal("0.01")


def differs_from_published(db: duckdb.DuckDBPyConnection, ours: Mapping[str, Rows]) -> list[Any]:
    """Where our tables are not those of the published models, but for the last digit of averages and ties of a mode."""
    apart: list[Any] = []
    for name, sql in PUBLISHED.items():
        db.execute(f"CREATE TABLE published_{name} AS {sql}")
        theirs = db.execute(f"SELECT * FROM published_{name}").to_arrow_table().to_pylist()
        held = {
            tuple(row[key] for key in _KEYS[name]): row for row in ours[name] if row.get("pickup_zone", "") is not None
        }
        apart += [(name, key) for key in {tuple(row[key] for key in _KEYS[name]) for row in theirs} ^ set(held)]
        for row in theirs:
            mine = held.get(tuple(row[key] for key in _KEYS[name]), {})
            apart += [
                (name, column, mine.get(column), value)
                for column, value in row.items()
                if not _same(mine.get(column), value)
            ]
    return apart


def _same(mine: Any, theirs: Any) -> bool:
    if isinstance(theirs, list):  # how often each value came: whichever is chosen of the most frequent ones is right
        often = dict(theirs)
        return bool(often.get(mine) == max(often.values(), default=None))
    if isinstance(theirs, float):
        return mine is not None and abs(mine - Decimal(repr(theirs))) <= _LAST_DIGIT
    return bool(mine == theirs)
