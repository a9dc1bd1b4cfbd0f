"""New York yellow taxi trips: raw events to daily and hourly figures, seconds behind the broker."""

import os

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lodestream import Avro, Json, Kafka, Pipeline, Protobuf

taxi = Pipeline("taxi")

# The generator can send the same events as Avro or Protobuf under the schemas of a registry.
EVENT = "contracts/trip_event.yaml"
REGISTRY = os.environ.get("TAXI_REGISTRY", "http://127.0.0.1:8081")
FORMATS = {
    "json": Json(EVENT),
    "avro": Avro(registry=REGISTRY, columns=EVENT),
    "protobuf": Protobuf(registry=REGISTRY, columns=EVENT),
}

trips_raw = taxi.bronze("trips_raw", Kafka("taxi.trips"), owner="mobility")

zones = taxi.reference(
    "zones",
    "reference/zones.csv",
    schema="location_id int, borough string, zone_name string, service_zone string",
    keys=["location_id"],
    owner="mobility",
)

payment_types = taxi.reference(
    "payment_types",
    "reference/payment_types.csv",
    schema="payment_type_id int, payment_type_name string",
    keys=["payment_type_id"],
    owner="mobility",
)
rate_codes = taxi.reference(
    "rate_codes",
    "reference/rate_codes.csv",
    schema="rate_code_id int, rate_code_name string",
    keys=["rate_code_id"],
    owner="mobility",
)

# What makes a trip the same trip when the event carries no id of its own.
IDENTITY = (
    "VendorID",
    "tpep_pickup_datetime",
    "tpep_dropoff_datetime",
    "PULocationID",
    "DOLocationID",
    "fare_amount",
    "total_amount",
)

# With TAXI_CORRECTIONS=1 trips are corrected and deleted by later events, and everything below follows. Without it a
# trip is written once, which costs a batch less.
CORRECTIONS = bool(os.environ.get("TAXI_CORRECTIONS"))
CHANGES = {"sequence_by": ["changed_at", "earlier"], "delete_when": "op = 'd'"}
# The id of a plain event is made of its pickup time too, so a copy has the same day: no other day is searched for it.
COPIES = {"dedupe_within": "days(pickup_datetime)"}


@taxi.silver(
    decode=FORMATS[os.environ.get("TAXI_FORMAT", "json")],
    contract="contracts/trip.yaml",
    partition_by="days(pickup_datetime)",
    **(CHANGES if CORRECTIONS else COPIES),
)
def trips(trips_raw: DataFrame) -> DataFrame:
    """One row per trip, typed and checked; the contract names the columns and the rules."""
    parts = [f.coalesce(f.col(name).cast("string"), f.lit("null")) for name in IDENTITY]
    named = trips_raw.withColumn("trip_id", f.coalesce(f.col("trip_uid"), f.md5(f.concat_ws("-", *parts))))
    return ordered(named) if CORRECTIONS else named


def ordered(events: DataFrame) -> DataFrame:
    """The last change of a trip wins; of plain events, which have no moment of change, the first one that came."""
    changed_at = f.coalesce(f.col("updated_at").cast("timestamp_ntz"), f.expr("TIMESTAMP_NTZ'1970-01-01'"))
    earlier = f.expr("CASE WHEN updated_at IS NULL THEN -(_lode.partition * 1000000000000 + _lode.offset) ELSE 0 END")
    return events.withColumn("changed_at", changed_at).withColumn("earlier", earlier)


@taxi.silver(
    owner="mobility",
    partition_by="days(pickup_datetime)",
    filters={
        "lasts 1 to 720 minutes": "trip_duration_minutes BETWEEN 1 AND 720",
        "slower than 100 mph": "avg_speed_mph IS NULL OR avg_speed_mph < 100",
    },
)
def trip_metrics(trips: DataFrame) -> DataFrame:
    """Durations, speeds and shares of each trip."""
    minutes = f.expr(
        "cast(timestampdiff(MINUTE, date_trunc('MINUTE', pickup_datetime),"
        " date_trunc('MINUTE', dropoff_datetime)) AS int)"
    )
    return (
        trips.withColumn("trip_duration_minutes", minutes)
        .withColumn(
            "avg_speed_mph",
            f.expr(
                "CASE WHEN trip_duration_minutes > 0"
                " THEN round(trip_distance_miles / (trip_duration_minutes / 60.0D), 2) END"
            ),
        )
        .withColumn(
            "cost_per_mile", f.expr("CASE WHEN trip_distance_miles > 0 THEN fare_amount / trip_distance_miles END")
        )
        .withColumn("tip_percentage", f.expr("CASE WHEN fare_amount > 0 THEN 100 * tip_amount / fare_amount END"))
        .withColumn("pickup_date", f.to_date("pickup_datetime"))
        .withColumn("pickup_hour", f.hour("pickup_datetime"))
        .withColumn("pickup_day_of_week", f.date_format("pickup_datetime", "EEEE"))
        .withColumn("is_weekend", f.dayofweek("pickup_datetime").isin(1, 7))
    )


# The figures of the front page follow every batch; what is read less often, or costs more, has a pace of its own.
taxi.gold("daily_summary", sql="gold/daily_summary.sql", owner="mobility")
taxi.gold("hourly_patterns", sql="gold/hourly_patterns.sql", owner="mobility")
taxi.gold("fct_trips", sql="gold/fct_trips.sql", owner="mobility", partition_by="pickup_date", every="10 s")
taxi.gold("dim_dates", sql="gold/dim_dates.sql", owner="mobility", every="20 s")
taxi.gold("dim_locations", sql="gold/dim_locations.sql", owner="mobility")
taxi.gold("dim_payment_types", sql="gold/dim_payment_types.sql", owner="mobility")
taxi.gold(
    "mart_daily_revenue",
    sql="gold/mart_daily_revenue.sql",
    owner="finance",
    every="20 s",
    export="exports/daily_revenue.parquet",
)
taxi.gold("mart_hourly_demand", sql="gold/mart_hourly_demand.sql", owner="mobility", every="20 s")
taxi.gold("mart_location_performance", sql="gold/mart_location_performance.sql", owner="mobility", every="30 s")
taxi.gold("anomaly_daily_trips", sql="gold/anomaly_daily_trips.sql", owner="finance", every="30 s")
